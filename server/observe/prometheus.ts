/** The little of Prometheus' text format that we need: counters, gauges, histograms. */

export type Labels = Record<string, string>;

export interface Registry {
	counter(name: string, help: string): (labels: Labels, by?: number) => void;
	histogram(name: string, help: string, buckets: number[]): (labels: Labels, value: number) => void;
	/** Read when somebody asks. */
	gauge(name: string, help: string, read: () => Iterable<[Labels, number]> | Promise<Iterable<[Labels, number]>>): void;
	/** The whole as text. A gauge that fails is left out. */
	text(): Promise<string>;
}

/** Series of one metric: what a stranger can make up (model names of a provider, say) must not grow without end. */
const mostSeries = 500;

const quoted = (value: string): string => (special.test(value) ? escaped(value) : value);
const special = /[\\\n"]/;
const escaped = (value: string): string => value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
function written(labels: Labels): string {
	let parts = "";
	for (const name in labels) parts += `${parts === "" ? "" : ","}${name}="${quoted(labels[name] as string)}"`;
	return parts === "" ? "" : `{${parts}}`;
}
const figure = (value: number): string =>
	Number.isFinite(value) ? String(value) : value > 0 ? "+Inf" : Number.isNaN(value) ? "NaN" : "-Inf";

export function createRegistry(): Registry {
	const parts: (() => Promise<string>)[] = [];
	const head = (name: string, help: string, type: string): string =>
		`# HELP ${name} ${help.replaceAll("\n", " ")}\n# TYPE ${name} ${type}\n`;

	return {
		counter(name, help) {
			const values = new Map<string, number>();
			parts.push(
				async () => head(name, help, "counter") + [...values].map(([labels, value]) => `${name}${labels} ${figure(value)}\n`).join(""),
			);
			return (labels, by = 1) => {
				const key = written(labels);
				const before = values.get(key);
				if (before === undefined && values.size >= mostSeries) return;
				values.set(key, (before ?? 0) + by);
			};
		},
		histogram(name, help, buckets) {
			const series = new Map<string, { labels: Labels; counts: number[]; sum: number; count: number }>();
			parts.push(async () => {
				let out = head(name, help, "histogram");
				for (const { labels, counts, sum, count } of series.values()) {
					for (const [index, bound] of buckets.entries())
						out += `${name}_bucket${written({ ...labels, le: String(bound) })} ${counts[index]}\n`;
					out += `${name}_bucket${written({ ...labels, le: "+Inf" })} ${count}\n${name}_sum${written(labels)} ${figure(sum)}\n${name}_count${written(labels)} ${count}\n`;
				}
				return out;
			});
			return (labels, value) => {
				const key = written(labels);
				let one = series.get(key);
				if (!one) {
					if (series.size >= mostSeries) return;
					one = { labels, counts: buckets.map(() => 0), sum: 0, count: 0 };
					series.set(key, one);
				}
				for (let index = buckets.length - 1; index >= 0 && value <= (buckets[index] as number); index -= 1)
					one.counts[index] = (one.counts[index] ?? 0) + 1;
				one.sum += value;
				one.count += 1;
			};
		},
		gauge(name, help, read) {
			parts.push(async () => {
				try {
					const lines = [...(await read())].map(([labels, value]) => `${name}${written(labels)} ${figure(value)}\n`);
					return head(name, help, "gauge") + lines.join("");
				} catch {
					return "";
				}
			});
		},
		async text() {
			return (await Promise.all(parts.map((part) => part()))).join("");
		},
	};
}

/** Text as it is compared: width, case and accents folded, words reduced to their stems. Pure. */

/** NFKC, lower case, accents of Latin, Greek and Cyrillic letters dropped. */
export function fold(text: string): string {
	const folded = text.normalize("NFKC").toLowerCase();
	// Plain ASCII and Han are the usual case: nothing to take apart.
	if (!/[\u00c0-\u024f\u0370-\u04ff\u1e00-\u1fff]/.test(folded)) return folded;
	return folded
		.normalize("NFD")
		.replace(/[\u0300-\u036f]/g, "")
		.normalize("NFC");
}

const irregular = new Map(
	(
		"went:go gone:go goes:go bought:buy brought:bring thought:think taught:teach caught:catch sought:seek fought:fight ate:eat eaten:eat " +
		"gave:give given:give took:take taken:take made:make said:say told:tell sold:sell got:get gotten:get met:meet felt:feel left:leave kept:keep " +
		"slept:sleep built:build sent:send spent:spend lent:lend lost:lose won:win ran:run came:come became:become began:begin begun:begin drank:drink drunk:drink " +
		"sang:sing sung:sing swam:swim swum:swim wrote:write written:write rode:ride ridden:ride drove:drive driven:drive flew:fly flown:fly grew:grow grown:grow " +
		"knew:know known:know threw:throw thrown:throw drew:draw drawn:draw saw:see seen:see wore:wear worn:wear chose:choose chosen:choose spoke:speak spoken:speak " +
		"broke:break broken:break stole:steal stolen:steal woke:wake woken:wake froze:freeze forgot:forget forgotten:forget hid:hide hidden:hide bit:bite found:find " +
		"held:hold heard:hear understood:understand stood:stand paid:pay laid:lay led:lead read:read sat:sit fell:fall fallen:fall hung:hang struck:strike stuck:stick " +
		"children:child men:man women:woman people:person mice:mouse feet:foot teeth:tooth wives:wife lives:life better:good best:good worse:bad worst:bad " +
		"did:do done:do does:do had:have has:have was:be were:be been:be is:be are:be am:be married:marry marriage:marry wedding:wed cities:city dying:die died:die born:birth"
	)
		.split(" ")
		.map((pair) => pair.split(":") as [string, string]),
);

const hasVowel = (stem: string): boolean => /[aeiouy]/.test(stem);

/** A light English stemmer: plurals, -ed, -ing, -ly and the commonest noun endings. Both sides of a search use it. */
export function stem(word: string): string {
	const known = irregular.get(word);
	if (known) return known;
	if (word.length < 4 || !/^[a-z]+$/.test(word)) return word;
	let out = word;
	if (out.endsWith("sses")) out = out.slice(0, -2);
	else if (out.endsWith("ies")) out = `${out.slice(0, -3)}y`;
	else if (/(?:x|ch|sh|z)es$/.test(out)) out = out.slice(0, -2);
	else if (out.endsWith("s") && !/(?:ss|us|is)$/.test(out)) out = out.slice(0, -1);

	const before = out;
	if (out.endsWith("ied")) out = `${out.slice(0, -3)}y`;
	else if (out.endsWith("ed") && out.length > 4 && hasVowel(out.slice(0, -2))) out = out.slice(0, -2);
	else if (out.endsWith("ing") && out.length > 5 && hasVowel(out.slice(0, -3))) out = out.slice(0, -3);
	if (out !== before) {
		if (/(?:at|bl|iz)$/.test(out)) out += "e";
		else if (/([bdfgmnprt])\1$/.test(out)) out = out.slice(0, -1);
	}
	for (const [ending, put] of endings) {
		if (out.length - ending.length >= 3 && out.endsWith(ending)) {
			out = out.slice(0, -ending.length) + put;
			break;
		}
	}
	// A last silent e or y hides that "hike" and "hiking", "study" and "studied" are one word.
	if (out.length > 3 && out.endsWith("e")) out = out.slice(0, -1);
	if (out.length > 3 && out.endsWith("y")) out = `${out.slice(0, -1)}i`;
	return out;
}

const endings: [string, string][] = [
	["ization", "iz"],
	["ational", "at"],
	["fulness", "ful"],
	["ousness", "ous"],
	["ation", "at"],
	["ition", "it"],
	["ement", ""],
	["ment", ""],
	["ness", ""],
	["ally", "al"],
	["ably", "abl"],
	["ily", "y"],
	["ly", ""],
];

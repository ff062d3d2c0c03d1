/** `make`, done once for each configuration in force: what every call or message asks for need not be made anew each time. */
export function onceFor<Config extends object, Made>(make: (config: Config) => Made): (config: Config) => Made {
	let of: Config | undefined;
	let made: Made;
	return (config) => {
		if (config !== of) {
			made = make(config);
			of = config;
		}
		return made;
	};
}

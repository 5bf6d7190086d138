// readme.mjs - the commands of README.md.

/** The blocks of shell, each as its lines. */
export function shellBlocks(text) {
  return [...text.matchAll(/^```sh\n([^]*?)^```$/gm)].map((m) => m[1].trimEnd().split('\n'));
}

/** What its section "A sandbox in one minute" types in the second terminal, up to `cove ps`. Left out is what
 * needs the internet or takes over the terminal. */
export function firstCommands(text) {
  const lines = shellBlocks(text)[1].filter((l) => l !== '' && !l.startsWith('export') && !l.includes('https:'));
  return lines.slice(0, lines.findIndex((l) => l.startsWith('cove ps')) + 1)
    .filter((l) => !l.startsWith('cove shell'))
    .map((l) => l.replace(/ +#/, '  #'));
}

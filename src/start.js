// start.js: looks at the Node that runs us before anything is loaded that it may not understand.
//
// Plain JavaScript of the oldest kind, because an old Node has to read it: Node 20 cannot load a .ts file and would
// say so in words that help nobody. With the pinned Node in node_modules/.bin (npm scripts find it first) this is
// never seen; it is for machines for which no such package exists.

const version = process.versions.node.split('.').map(Number)
const major = version[0] || 0
const minor = version[1] || 0
const fits = major === 22 ? minor >= 19 : major === 23 ? minor >= 6 : major >= 24

if (fits) {
  await import('./main.ts')
} else {
  process.stderr.write(
    'NODE_TOO_OLD\n' +
      `  This is Node ${process.versions.node} (${process.execPath}).\n` +
      '  The gateway needs Node 22.19 or newer, best 24: it runs TypeScript as it stands.\n' +
      '  On Linux x64 and arm64 `npm ci` brings the right one: start with `npm start` or `npm run gateway -- COMMAND`.\n' +
      '  Elsewhere install Node 24 (https://nodejs.org/en/download) and try again.\n',
  )
  process.exitCode = 2
}

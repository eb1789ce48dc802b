// start.js: checks the version of Node before it loads anything that an old Node cannot read.
//
// This file is plain JavaScript: Node 20 cannot load a .ts file, and its error does not name the cause. npm scripts
// and the installed command (launcher.sh) use the pinned Node; the check is for machines without one.

const version = process.versions.node.split('.').map(Number)
const major = version[0] || 0
const minor = version[1] || 0
const fits = major === 22 ? minor >= 19 : major === 23 ? minor >= 6 : major >= 24

if (fits) {
  await import('./main.ts')
} else {
  const what = `This is Node ${process.versions.node} (${process.execPath}).`
  const why = 'The gateway needs Node 22.19 or newer, best 24.'
  const act =
    'On Linux x64 and arm64 npm installs Node 24 with the gateway, as an optional dependency. Start the gateway\n' +
    'with `telemetry-gateway COMMAND`; in a checkout run `npm ci`, then `npm run gateway -- COMMAND`.\n' +
    'On other systems install Node 24 (https://nodejs.org/en/download).'
  const indented = [what, why, act].map((text) => `  ${text.split('\n').join('\n  ')}\n`)
  process.stderr.write(
    process.argv.includes('--json')
      ? `${JSON.stringify({ error: { code: 'NODE_TOO_OLD', what, why, act } })}\n`
      : `NODE_TOO_OLD\n${indented.join('')}`,
  )
  process.exitCode = 2
}

// config-check.ts: the program with which preinst checks the config before the files of the new version are there:
// `check` of this version, in one file (config-check-archive.ts), on the Node of the version that is installed.
//
// It prints `valid`, or the code and the problems of a config that is refused. Anything else is no verdict: then it
// could not run. It takes the arguments of `run` and changes nothing.

import { parseArgs } from 'node:util'
import { checkConfig } from '../../src/cli/check-command/config-findings.ts'
import { reportError } from '../../src/cli/terminal/error-report.ts'

// An option of `run` that the check does not know is no reason to refuse an upgrade.
const { values } = parseArgs({ options: { config: { type: 'string', default: '' } }, strict: false })
try {
  await checkConfig(String(values.config), process.env)
  process.stdout.write('valid\n')
} catch (error) {
  reportError(error, process.stdout, { json: false, env: {} })
}

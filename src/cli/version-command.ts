// version-command.ts: `version`: the versions that a report about a fault needs.

import { Command } from 'commander'
import { readVersion } from './terminal/package-version.ts'
import { printAnswer, type BuildCommand } from './terminal/terminal.ts'

export const versionCommand: BuildCommand = (io, done) =>
  new Command('version').option('--json', 'print one JSON document').action((options: { json?: boolean }) => {
    const { version: node, platform, arch } = process
    const versions = { version: readVersion(), node, platform, arch }
    printAnswer(
      io,
      options,
      versions,
      ({ version }) => `telemetry-gateway ${version}, Node ${node}, ${platform} ${arch}\n`,
    )
    done(0)
  })

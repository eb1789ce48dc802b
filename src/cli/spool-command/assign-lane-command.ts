// assign-lane-command.ts: `spool assign-lane`: gives a lane whose provider is lost to a provider.

import { Command } from 'commander'
import { plural } from '../../std/quantity.ts'
import { requestByOptions, withDaemonOptions, type DaemonOptions } from '../daemon-client/daemon-options.ts'
import { printAnswer, type BuildCommand } from '../terminal/terminal.ts'
import { notes, textOfLines } from '../terminal/text-format.ts'

type AssignOptions = DaemonOptions & { lane: string; provider: string }
type AssignReport = { lane: number; provider: string; payloads: number }

export const assignLaneCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('assign-lane'))
    .description('Give a lane whose provider is lost to a provider of the config.')
    .requiredOption('--lane <n>', 'number of the lane, from the condition LANE_UNKNOWN (required)')
    .requiredOption('--provider <name>', 'provider whose payloads the lane holds (required)')
    .addHelpText('after', notes('Its payloads are then delivered with the key of that provider.'))
    .action(async (options: AssignOptions) => {
      const params = new URLSearchParams({ lane: options.lane, provider: options.provider })
      const path = `/control/spool/assign-lane?${params.toString()}`
      const request = { path, method: 'POST', timeoutMs: Infinity } as const
      const report = (await requestByOptions(options, io, request)) as AssignReport
      printAnswer(io, options, report, ({ lane, provider, payloads }) =>
        textOfLines([
          `Lane ${lane} with ${plural(payloads, 'payload')} belongs to provider ${provider} now.`,
        ]),
      )
      done(0)
    })

// quarantine-command.ts: `quarantine`: list messages in quarantine, release or drop them.

import { Command } from 'commander'
import { GatewayError } from '../std/gateway-error.ts'
import type { IsoTimes } from '../std/iso-times.ts'
import { plural } from '../std/quantity.ts'
import type { DropReport, QuarantineView, ReleaseReport } from '../ops/ops.ts'
import {
  changeRequest,
  requestByOptions,
  withDaemonOptions,
  type DaemonOptions,
} from './daemon-client/daemon-options.ts'
import { duplicatesLines } from './dead-letters-command/remap-text.ts'
import { wholeNumber } from './terminal/option-values.ts'
import { columns } from './terminal/text-table.ts'
import { printAnswer, type BuildCommand } from './terminal/terminal.ts'
import { agoSince, countLines, textOfLines, notes, listsByDefault } from './terminal/text-format.ts'

type Selection = { device?: string; id?: string[]; reason?: string; all?: boolean }

export const quarantineCommand: BuildCommand = (io, done) =>
  new Command('quarantine')
    .addCommand(listCommand(io, done), { isDefault: true })
    .addCommand(releaseCommand(io, done))
    .addCommand(dropCommand(io, done))
    .addHelpText('after', listsByDefault('quarantine'))

const listCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('list'))
    .description('List what is in quarantine, by device and reason.')
    .option('--device <name>', 'list the messages of this device, each with its id')
    .option('--limit <rows>', 'show at most this many rows', wholeNumber(1, 1000), 100)
    .action(async (options: DaemonOptions & { device?: string; limit: number }) => {
      const { device, limit } = options
      const query = paramsOf({ device, limit: String(limit) }).toString()
      const request = { path: `/quarantine?${query}`, method: 'GET', timeoutMs: Infinity } as const
      const view = (await requestByOptions(options, io, request)) as IsoTimes<QuarantineView>
      const textOf = device === undefined ? groupsText : messagesText
      printAnswer(io, options, view, (answer, width) => textOf(answer, Date.now(), width))
      done(0)
    })

const releaseCommand: BuildCommand = (io, done) =>
  withSelection(withDaemonOptions(new Command('release')))
    .description('Map messages that are in quarantine because of their clock.')
    .option('--all', 'release the messages of all devices')
    .option('--restamp', 'replace a wrong device time by the time of arrival (default: keep it)')
    .addHelpText(
      'after',
      notes(
        'Messages of an unlisted device need no release: they are mapped when the device table lists the ' +
          'device.',
        'Exit status 1: an id does not exist.',
      ),
    )
    .action(async (options: DaemonOptions & Selection & { restamp?: boolean }) => {
      const params = paramsOf({ ...checkedSelection(options), restamp: options.restamp })
      const request = changeRequest('quarantine/release', params)
      const report = (await requestByOptions(options, io, request)) as ReleaseReport
      const missing = missingOf(options, report.released + report.unlisted + report.releasing)
      printAnswer(io, options, report, (answer) => releaseText(answer) + missingText(missing))
      done(missing > 0 ? 1 : 0)
    })

const dropCommand: BuildCommand = (io, done) =>
  withSelection(withDaemonOptions(new Command('drop')))
    .description('Turn messages in quarantine into dead letters.')
    .option('--all', 'drop the messages of all devices; needs --reason')
    .option('--reason <code>', 'only messages that are kept for this reason, such as UNKNOWN_DEVICE')
    .option('--yes', 'drop them (default: only show what would be dropped)')
    .addHelpText(
      'after',
      notes(
        'To undo a drop: dead-letters remap --reason DROPPED_BY_OPERATOR. To delete the messages: ' +
          'dead-letters purge.',
      ),
    )
    .action(async (options: DaemonOptions & Selection & { yes?: boolean }) => {
      if (options.all === true && options.reason === undefined) throw noReason()
      const params = paramsOf({ ...checkedSelection(options), yes: options.yes })
      const request = changeRequest('quarantine/drop', params)
      const report = (await requestByOptions(options, io, request)) as DropReport
      // With --reason, some of the ids may have another one.
      const missing = options.reason === undefined ? missingOf(options, report.messages) : 0
      printAnswer(io, options, report, (answer) => dropText(answer) + missingText(missing))
      done(missing > 0 ? 1 : 0)
    })

function withSelection(command: Command): Command {
  return command
    .option('--device <name>', 'select the messages of this device')
    .option('--id <id...>', 'select these messages; `quarantine list --device` shows their ids')
}

function checkedSelection({ device, id, reason, all }: Selection): Selection {
  if (device !== undefined && all === true)
    throw new GatewayError('USAGE', {
      what: 'Both --device and --all are given.',
      why: '--all selects the messages of every device.',
      act: 'Give one of them.',
    })
  const isOne = id !== undefined
  if (isOne ? all !== true : device !== undefined || all === true)
    return { device, id, reason, all } as Selection
  throw new GatewayError('USAGE', {
    what: isOne ? 'Both --id and --all are given.' : 'No message is selected.',
    why: isOne ? '--id selects one message.' : 'The command does not assume that you mean all messages.',
    act: 'Give --device, --id or both, or --all.',
  })
}

function noReason(): GatewayError {
  return new GatewayError('USAGE', {
    what: '--all is given without --reason.',
    why: 'The command does not assume that you mean messages of every kind.',
    act: 'Give --reason, such as --reason UNKNOWN_DEVICE. `quarantine list` shows the reasons.',
  })
}

function paramsOf(values: Record<string, string | string[] | boolean | undefined>): URLSearchParams {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(values)) {
    if (Array.isArray(value)) for (const one of value) params.append(name, one)
    else if (value !== undefined && value !== false) params.set(name, value === true ? '1' : value)
  }
  return params
}

function missingOf({ id = [] }: Selection, found: number): number {
  return Math.max(0, new Set(id).size - found)
}

function missingText(missing: number): string {
  return missing === 0 ? '' : `  ${plural(missing, 'id')} not found\n`
}

function groupsText(view: IsoTimes<QuarantineView>, now: number, width: number): string {
  const { scanned, more, shelves, groups } = view
  if (scanned === 0) return 'The quarantine is empty.\n'
  const rows = groups.map(({ device, reason, messages, oldestAt, latestAt, detail }) => [
    device ?? '-',
    reason,
    String(messages),
    agoSince(oldestAt, now),
    agoSince(latestAt, now),
    detail,
  ])
  const all = shelves.reduce((sum, { messages }) => sum + messages, 0)
  return textOfLines([
    ...columns(
      [['device', 'reason', 'messages', 'oldest', 'latest', 'detail of the latest'], ...rows],
      width,
    ),
    ...(more ? [`The list is incomplete: there are ${plural(all, 'message')}.`] : []),
  ])
}

function messagesText({ scanned, messages }: IsoTimes<QuarantineView>, now: number, width: number): string {
  if (scanned === 0) return 'The quarantine has no messages of this device.\n'
  const rows = messages.map(({ id, reason, arrivedAt, topic, detail }) => [
    id,
    reason,
    agoSince(arrivedAt, now),
    topic,
    detail,
  ])
  const rest = messages.length < scanned ? [`and ${scanned - messages.length} more`] : []
  const head = ['id', 'reason', 'arrived', 'topic', 'detail']
  return textOfLines([...columns([head, ...rows], width), ...rest])
}

function releaseText(report: ReleaseReport): string {
  const { released, payloads, duplicates, dead, ignored, kept, unlisted, releasing } = report
  return textOfLines([
    `${plural(released, 'message')} released, ${plural(payloads, 'payload')} made.`,
    ...duplicatesLines(duplicates),
    ...countLines(dead, (count, reason) => `${plural(count, 'dead letter')}: ${reason}`),
    ...countLines(ignored, (count, reason) => `${count} ignored: ${reason}`),
    ...countLines(kept, (count, reason) => `${count} in quarantine again: ${reason}`),
    ...(releasing > 0
      ? [`${plural(releasing, 'message')} of listed devices: the gateway releases them automatically.`]
      : []),
    ...(unlisted > 0
      ? [
          `${plural(unlisted, 'message')} not released: the device table (devices.file) does not list the device.`,
        ]
      : []),
  ])
}

function dropText({ dryRun, messages, reasons }: DropReport): string {
  const what = plural(messages, 'message')
  return textOfLines([
    dryRun
      ? `${what} would be dropped.`
      : `${what} dropped. Reason of the dead letters: DROPPED_BY_OPERATOR.`,
    ...countLines(reasons, (count, reason) => `${count} ${reason}`),
    ...(dryRun ? ['Nothing was changed. Add --yes to drop them.'] : []),
  ])
}

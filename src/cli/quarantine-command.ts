// quarantine-command.ts: `quarantine`: messages that are kept whole, and what a person decides about them.

import { Command, InvalidArgumentError } from 'commander'
import { GatewayError } from '../std/gateway-error.ts'
import { formatDuration } from '../std/quantity.ts'
import { visible } from '../std/quote.ts'
import type { DropReport, QuarantineView, ReleaseReport } from '../ops/ops.ts'
import { requestDaemon } from './daemon-client.ts'
import { countOf } from './terminal/result-text.ts'
import type { CommandIo, ExitStatus } from './terminal/terminal.ts'
import { daemonUrl } from './status-command.ts'
import { columns } from './terminal/text-table.ts'

type PlaceOptions = { config?: string; url?: string; json?: boolean }
type WhichOptions = PlaceOptions & { device?: string; id?: string }
type Build = (io: CommandIo, done: (status: ExitStatus) => void) => Command

export const quarantineCommand: Build = (io, done) =>
  new Command('quarantine')
    .description('messages of unlisted devices and wrong clocks: lists, releases, drops them')
    .addCommand(listCommand(io, done), { isDefault: true })
    .addCommand(releaseCommand(io, done))
    .addCommand(dropCommand(io, done))

function countIn(text: string): number {
  const count = Number(text)
  if (Number.isInteger(count) && count >= 1 && count <= 1000) return count
  throw new InvalidArgumentError('Give a whole number from 1 to 1000.')
}

const listCommand: Build = (io, done) =>
  asking(new Command('list'))
    .description('what is kept, by device and reason; the messages of one device with their ids')
    .option('--device <name>', 'the messages of this device')
    .option('--limit <count>', 'rows to show', countIn, 100)
    .action(async (options: PlaceOptions & { device?: string; limit: number }) => {
      const query = new URLSearchParams({ limit: String(options.limit) })
      if (options.device !== undefined) query.set('device', options.device)
      const view = (await ask('GET', `/quarantine?${query.toString()}`, options, io)) as QuarantineView
      const text = options.device === undefined ? groupsText : messagesText
      io.stdout.write(options.json ? `${JSON.stringify(view)}\n` : text(view, Date.now()))
      done(0)
    })

const releaseCommand: Build = (io, done) =>
  choosing(asking(new Command('release')))
    .description('maps messages that are kept because of their clock, as they are or with another time')
    .option('--all', 'all of the device, or of all devices')
    .option('--restamp', 'what is wrong with their time gets the time of their arrival')
    .addHelpText(
      'after',
      '\nWhat is kept because its device is not listed goes by itself once the device table has it.',
    )
    .action(async (options: WhichOptions & { all?: boolean; restamp?: boolean }) => {
      const query = whichIn(options, options.all === true)
      if (options.restamp === true) query.set('restamp', '1')
      const path = `/control/quarantine/release?${query.toString()}`
      const report = (await ask('POST', path, options, io)) as ReleaseReport
      io.stdout.write(options.json ? `${JSON.stringify(report)}\n` : releaseText(report))
      done(0)
    })

const dropCommand: Build = (io, done) =>
  choosing(asking(new Command('drop')))
    .description('gives messages up: they become dead letters; without --yes it says what would go')
    .option('--yes', 'do it')
    .addHelpText(
      'after',
      '\nTo take it back: dead-letters remap --reason DROPPED_BY_OPERATOR. To be rid of them for good: dead-letters purge.',
    )
    .action(async (options: WhichOptions & { yes?: boolean }) => {
      const query = whichIn(options, false)
      if (options.yes === true) query.set('yes', '1')
      const report = (await ask(
        'POST',
        `/control/quarantine/drop?${query.toString()}`,
        options,
        io,
      )) as DropReport
      io.stdout.write(options.json ? `${JSON.stringify(report)}\n` : dropText(report))
      done(0)
    })

function asking(command: Command): Command {
  return command
    .option('--config <file>', 'take the address from ops.listen of this config')
    .option('--url <url>', 'base URL of the daemon (default: http://127.0.0.1:8080)')
    .option('--json', 'the answer as it came')
}

function choosing(command: Command): Command {
  return command
    .option('--device <name>', 'the messages of this device')
    .option('--id <id>', 'this message, as `quarantine list --device` shows it')
}

async function ask(
  method: 'GET' | 'POST',
  path: string,
  options: PlaceOptions,
  io: CommandIo,
): Promise<unknown> {
  const url = await daemonUrl(options, io)
  return requestDaemon({ url, path, method, stop: io.stop, untimed: true })
}

function whichIn({ device, id }: WhichOptions, all: boolean): URLSearchParams {
  const query = new URLSearchParams()
  if (device !== undefined) query.set('device', device)
  if (id !== undefined) query.set('id', id)
  if (all) query.set('all', '1')
  if (query.size > 0 && !(all && id !== undefined)) return query
  throw new GatewayError('USAGE', {
    what: query.size > 0 ? 'One message is not all of them.' : 'It is not said which messages are meant.',
    why: 'Nothing said does not mean everything.',
    act: 'Give --device, --id or both; for release also --all.',
  })
}

function groupsText({ scanned, more, shelves, groups }: QuarantineView, now: number): string {
  if (scanned === 0) return 'Nothing is in quarantine.\n'
  const rows = groups.map(({ device, reason, messages, oldestAt, latestAt, detail }) => [
    device ?? '-',
    reason,
    String(messages),
    ago(now - oldestAt),
    ago(now - latestAt),
    detail,
  ])
  const all = shelves.reduce((sum, { messages }) => sum + messages, 0)
  const head = ['device', 'reason', 'messages', 'oldest', 'latest', 'the latest says']
  return lined([
    ...columns([head, ...rows]),
    ...(more ? [`There are ${all} in all; this is not all of it.`] : []),
  ])
}

function messagesText({ scanned, messages }: QuarantineView, now: number): string {
  if (scanned === 0) return 'Nothing of this device is in quarantine.\n'
  const rows = messages.map(({ id, reason, arrivedAt, topic, detail }) => [
    id,
    reason,
    ago(now - arrivedAt),
    topic,
    detail,
  ])
  const note = messages.length < scanned ? [`and ${scanned - messages.length} more`] : []
  return lined([...columns([['id', 'reason', 'arrived', 'topic', 'why'], ...rows]), ...note])
}

function releaseText(report: ReleaseReport): string {
  const { released, payloads, dead, ignored, kept, unlisted, releasing } = report
  return lined(
    [
      `${countOf(released, 'message')} left the quarantine and became ${countOf(payloads, 'payload')}.`,
      ...Object.entries(dead).map(([reason, count]) => `  ${count} became dead letters: ${reason}`),
      ...Object.entries(ignored).map(([reason, count]) => `  ${count} left out on purpose: ${reason}`),
      ...Object.entries(kept).map(([reason, count]) => `  ${count} are kept anew: ${reason}`),
      ...(releasing > 0 ? [`Of listed devices ${countOf(releasing, 'message')} will go by themselves.`] : []),
      ...(unlisted > 0
        ? [
            `Left where they are: ${countOf(unlisted, 'message')} of devices that are not in the device table (devices.file).`,
          ]
        : []),
    ].map(visible),
  )
}

function dropText({ dryRun, messages, reasons }: DropReport): string {
  return lined(
    [
      `${countOf(messages, 'message')} ${dryRun ? 'would become dead letters' : 'became dead letters (DROPPED_BY_OPERATOR)'}.`,
      ...Object.entries(reasons).map(([reason, count]) => `  ${count} were kept as ${reason}`),
      ...(dryRun ? ['Nothing was changed; add --yes to do it.'] : []),
    ].map(visible),
  )
}

function ago(ms: number): string {
  return `${formatDuration(Math.max(0, ms))} ago`
}

function lined(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`
}

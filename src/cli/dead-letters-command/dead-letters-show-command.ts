// dead-letters-show-command.ts: `dead-letters show`: one dead letter, whole, for a person who looks for what is wrong with it.

import { Command } from 'commander'
import { formatSize } from '../../std/quantity.ts'
import { visible } from '../../std/quote.ts'
import type { DeadLetter } from '../../domain/dead-letter.ts'
import type { DeadLetterEntry } from '../../spool/spool.ts'
import { noSuchDeadLetter } from '../../dead-letters/dead-letters.ts'
import { requestDaemon } from '../daemon-client.ts'
import { requestOrRead, withSpoolOptions, type PlaceOptions } from './dead-letter-options.ts'
import type { CommandIo, ExitStatus } from '../terminal/terminal.ts'
import { columns } from '../terminal/text-table.ts'

export function showCommand(io: CommandIo, done: (status: ExitStatus) => void): Command {
  return withSpoolOptions(new Command('show'))
    .argument('<id>', 'as `list --ids` shows it')
    .description('one dead letter, whole: message, payload, what the service said')
    .option('--hex', 'the message as hexadecimal digits, also where it is text')
    .action(async (id: string, options: PlaceOptions & { hex?: boolean }) => {
      const path = `/control/dead-letters/show?id=${encodeURIComponent(id)}`
      const entry = await requestOrRead(
        options,
        io,
        async (url) => (await requestDaemon({ url, path, method: 'POST', stop: io.stop })) as DeadLetterEntry,
        (spool) => spool.deadLetter(id),
      )
      if (entry === null) throw noSuchDeadLetter(id)
      const text = () => textOf(entry, { hex: options.hex ?? false })
      io.stdout.write(options.json ? `${JSON.stringify(entry)}\n` : text())
      done(0)
    })
}

function textOf({ id, deadLetter: letter }: DeadLetterEntry, { hex }: { hex: boolean }): string {
  const { stage, reason, detail, at, provider, device, payloadId, batchId, requestId, failure, payload } =
    letter
  const known: [string, string | null][] = [
    ['dead letter', id],
    ['stage', stage],
    ['reason', reason],
    ['says', detail],
    ['since', new Date(at).toISOString()],
    ['provider', provider],
    ['device', device],
    ['payloadId', payloadId],
    ['batchId', batchId],
    ['requestId', requestId],
    ['error type', failure?.errorType ?? null],
    ['the service', failure?.errorMessage ?? null],
    ...envelopeRows(letter),
  ]
  const rows = known.filter((row): row is [string, string] => row[1] !== null)
  const fields = failure?.validationErrorDetails ?? []
  const lines = [
    ...columns(rows),
    ...(fields.length > 0 ? ['', 'fields that the service refuses:'] : []),
    ...columns(fields.map(({ field, message }) => [`  ${field}`, message])),
    ...messageLines(letter, hex),
    ...(payload === null ? [] : ['', 'payload:', ...linesOf(JSON.stringify(payload, null, 2))]),
  ]
  return `${lines.join('\n')}\n`
}

function envelopeRows({ envelope }: DeadLetter): [string, string | null][] {
  if (envelope === null) return []
  const { source, topic, clientId, userName, certificateName, qos, retain, dup, arrivedAt } = envelope
  const flags = [`QoS ${qos}`, ...(retain ? ['retained'] : []), ...(dup ? ['sent before'] : [])].join(', ')
  return [
    ['source', source],
    ['topic', topic],
    ['client', clientId],
    ['user', userName],
    ['certificate', certificateName],
    ['arrived', `${new Date(arrivedAt).toISOString()}, ${flags}`],
  ]
}

function messageLines({ envelope }: DeadLetter, hex: boolean): string[] {
  if (envelope === null) return []
  const bytes = Buffer.from(envelope.bytes, 'base64')
  const text = hex ? null : textIn(bytes)
  const head = `message, ${formatSize(bytes.length)}${text === null ? ', hexadecimal' : ''}:`
  return ['', head, ...(text === null ? hexLines(bytes) : linesOf(text))]
}

/** Null where it is no text that a person could read. */
function textIn(bytes: Buffer): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return /[^\P{Cc}\t\n\r]/u.test(text) ? null : text
  } catch {
    return null
  }
}

function linesOf(text: string): string[] {
  return text.split(/\r?\n/).map((line) => visible(line.replaceAll('\t', '  ')))
}

const rowBytes = 16

function hexLines(bytes: Buffer): string[] {
  const lines: string[] = []
  for (let start = 0; start < bytes.length; start += rowBytes) {
    const row = bytes.subarray(start, start + rowBytes)
    const digits = [...row].map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
    const letters = [...row]
      .map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '.'))
      .join('')
    lines.push(`${start.toString(16).padStart(6, '0')}  ${digits.padEnd(rowBytes * 3)} ${letters}`)
  }
  return lines
}

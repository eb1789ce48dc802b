// dead-letters-show-command.ts: `dead-letters show`: prints one dead letter with its content.

import { Command } from 'commander'
import { isoTimes, type IsoTimes } from '../../std/iso-times.ts'
import { formatSize } from '../../std/quantity.ts'
import { visible } from '../../std/quote.ts'
import type { DeadLetter } from '../../domain/dead-letter.ts'
import { namedProperties } from '../../domain/message.ts'
import { noSuchDeadLetter } from '../../dead-letters/dead-letters.ts'
import type { DeadLetterEntry } from '../../spool/spool.ts'
import { requestOrRead, withSpoolOptions, type SpoolOptions } from '../daemon-client/spool-access.ts'
import { columns } from '../terminal/text-table.ts'
import { printAnswer, type BuildCommand } from '../terminal/terminal.ts'

export const showCommand: BuildCommand = (io, done) =>
  withSpoolOptions(new Command('show'))
    .argument('<id>', 'dead letter; `list --ids` shows its id')
    .description('Show one dead letter: message, payload, and the answer of the service.')
    .option('--hex', 'print the message in hexadecimal (default: as text where it is text)')
    .action(async (id: string, options: SpoolOptions & { hex?: boolean }) => {
      const request = {
        path: `/control/dead-letters/show?id=${encodeURIComponent(id)}`,
        method: 'POST',
      } as const
      const entry = await requestOrRead(options, io, request, async (spool) =>
        isoTimes(await spool.deadLetter(id)),
      )
      if (entry === null) throw noSuchDeadLetter(id)
      printAnswer(io, options, entry, (answer, width) => textOf(answer, options.hex ?? false, width))
      done(0)
    })

function devicesText({ devices = [], moreDevices = 0 }: IsoTimes<DeadLetter>): string | null {
  if (devices.length === 0) return null
  return devices.join(', ') + (moreDevices > 0 ? ` and ${moreDevices} more` : '')
}

function textOf({ id, deadLetter }: IsoTimes<DeadLetterEntry>, hex: boolean, width: number): string {
  const { stage, reason, detail, at, provider, device, payloadId, batchId, requestId, failure, payload } =
    deadLetter
  const rows: [string, string | null][] = [
    ['dead letter', id],
    ['stage', stage],
    ['reason', reason],
    ['detail', detail],
    ['since', at],
    ['provider', provider],
    ['device', device],
    ['devices', devicesText(deadLetter)],
    ['payloadId', payloadId],
    ['batchId', batchId],
    ['requestId', requestId],
    ['error type', failure?.errorType ?? null],
    ['error message', failure?.errorMessage ?? null],
    ...envelopeRows(deadLetter),
  ]
  const fields = failure?.validationErrorDetails ?? []
  const lines = [
    ...columns(
      rows.filter((row): row is [string, string] => row[1] !== null),
      width,
    ),
    ...(fields.length > 0 ? ['', 'fields that the service refused:'] : []),
    ...columns(
      fields.map(({ field, message }) => [`  ${field}`, message]),
      width,
    ),
    ...messageLines(deadLetter, hex),
    ...(payload === null ? [] : ['', 'payload:', ...linesOf(JSON.stringify(payload, null, 2))]),
  ]
  return `${lines.join('\n')}\n`
}

function envelopeRows({ envelope }: IsoTimes<DeadLetter>): [string, string | null][] {
  if (envelope === null) return []
  const { source, topic, qos, retain, dup, arrivedAt } = envelope
  const { clientId, userName, certificateName, identity = null, address = null } = envelope
  const flags = [`QoS ${qos}`, ...(retain ? ['retained'] : []), ...(dup ? ['DUP'] : [])].join(', ')
  return [
    ['source', source],
    ['topic', topic],
    ['client', clientId],
    ['user', userName],
    ['certificate', certificateName],
    ['identity', identity],
    ['address', address],
    ['arrived', `${arrivedAt}, ${flags}`],
    ...namedProperties(envelope).map(([name, value]): [string, string] => [visible(name), value]),
  ]
}

function messageLines({ envelope }: IsoTimes<DeadLetter>, hex: boolean): string[] {
  if (envelope === null) return []
  const bytes = Buffer.from(envelope.bytes, 'base64')
  const text = hex ? null : textIn(bytes)
  const head = `message, ${formatSize(bytes.length)}${text === null ? ', in hexadecimal' : ''}:`
  return ['', head, ...(text === null ? hexLines(bytes) : linesOf(text))]
}

/** Null where the bytes are not printable UTF-8. */
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
    const characters = [...row]
      .map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '.'))
      .join('')
    lines.push(`${start.toString(16).padStart(6, '0')}  ${digits.padEnd(rowBytes * 3)} ${characters}`)
  }
  return lines
}

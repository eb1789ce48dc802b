// salvage-files.ts: writes the data that salvage finds, one file for each kind:
//
//   payloads.ndjson         pending or in a batch: acknowledged and not delivered
//   held.ndjson             in a held batch: the service may have processed them
//   settled-before.ndjson   settled before; they came back because the record of their deletion is lost
//   suspect.ndjson          payloads of chunks with a wrong checksum; an import leaves out lines marked
//                           `suspect`
//   messages.ndjson         kept whole: in quarantine, or waiting for their expression
//   dead-letters.ndjson     as `dead-letters export` writes them
//   open-parts.ndjson       values that waited to become a payload, as messages that can be mapped
//   state.ndjson            all state of the mapping, for a person to read
//   unreadable.ndjson       records that could not be decoded, with the reason
//   report.json             damage, problems, and the number of lines

import { createWriteStream, type WriteStream } from 'node:fs'
import { readdir, writeFile } from 'node:fs/promises'
import { once } from 'node:events'
import { join } from 'node:path'
import { assertNever } from '../../std/assert.ts'
import { GatewayError, messageOf, whyUnwritable } from '../../std/gateway-error.ts'
import { envelopeLine, exportLine, messageLine, payloadLine } from '../../dead-letters/dead-letters.ts'
import { envelopeOf } from '../../domain/message.ts'
import type { messageOfStateEntry } from '../../mapping/mapping.ts'
import type { Salvaged, SpoolCheck } from '../../spool/spool.ts'
import type { ReportAmount } from '../terminal/progress.ts'

export type SalvageReport = {
  path: string
  /** What to know about the result. */
  notes: readonly string[]
  /** Parts of files that cannot be read, with what they can have held. */
  damage: SpoolCheck['damage']
  /** Damage, wrong totals and unreadable records, a sentence each. */
  problems: readonly string[]
  problemsHidden: number
  files: readonly { file: string; lines: number }[]
  unreadable: number
}

/** Rejects as openSalvage does, or with OUTPUT_UNWRITABLE. */
export async function salvageTo(
  path: string,
  to: string,
  stop: AbortSignal,
  count: ReportAmount,
): Promise<SalvageReport> {
  // Loaded late: it brings the database.
  const { openSalvage } = await import('../../spool/spool.ts')
  const { messageOfStateEntry } = await import('../../mapping/mapping.ts')
  await makeEmpty(to)
  const salvage = await openSalvage(path, stop, count)
  try {
    const files = await writing(to, async (write) => {
      let lines = 0
      for await (const found of salvage.entries(stop))
        for (const [file, line] of linesOf(found, messageOfStateEntry)) {
          await write(file, line)
          lines += 1
          count({ done: lines, unit: 'lines' })
        }
    })
    const unreadable = files.find(({ file }) => file === 'unreadable.ndjson')?.lines ?? 0
    const { notes } = salvage
    const { damage, problems, problemsHidden } = salvage.check
    const report = { path, notes, damage, problems, problemsHidden, files, unreadable }
    await writeFile(join(to, 'report.json'), `${JSON.stringify(report, null, 2)}\n`, { flush: true })
    return report
  } finally {
    await salvage.close()
  }
}

type Line = [file: string, line: string]

function linesOf(found: Salvaged, messageOf: typeof messageOfStateEntry): Line[] {
  switch (found.kind) {
    case 'payload':
      return [[payloadFile(found), payloadLine(found)]]
    case 'message':
      return [['messages.ndjson', messageLine(found.message)]]
    case 'deadLetter':
      return [['dead-letters.ndjson', exportLine(found)]]
    case 'state': {
      const { key, value } = found
      const line = `${JSON.stringify({ kind: 'state', key, value: value.toString('base64') })}\n`
      const message = messageOf(key, value)
      const part = message === null ? null : envelopeLine(envelopeOf(message, null))
      return [...(part === null ? [] : [['open-parts.ndjson', part] as Line]), ['state.ndjson', line]]
    }
    case 'unreadable': {
      const { key, why, raw } = found
      const bytes = raw === null ? null : raw.toString('base64')
      return [['unreadable.ndjson', `${JSON.stringify({ kind: 'unreadable', key, why, raw: bytes })}\n`]]
    }
    default:
      return assertNever(found)
  }
}

function payloadFile({ suspect, batch, isSettled }: Extract<Salvaged, { kind: 'payload' }>): string {
  if (suspect !== null) return 'suspect.ndjson'
  if (isSettled) return 'settled-before.ndjson'
  return batch === null ? 'payloads.ndjson' : 'held.ndjson'
}

async function makeEmpty(to: string): Promise<void> {
  try {
    const { makeOutputDirectory } = await import('../../storage/storage.ts')
    await makeOutputDirectory(to)
    if ((await readdir(to)).length === 0) return
  } catch (error) {
    throw unwritable(to, whyUnwritable(to, error), error)
  }
  throw unwritable(to, 'The directory is not empty.', undefined)
}

type Write = (file: string, line: string) => Promise<void>

/** Opens each file at its first line. All files are on the disk when it resolves. */
async function writing(to: string, work: (write: Write) => Promise<void>): Promise<SalvageReport['files']> {
  const open = new Map<string, { stream: WriteStream; lines: number; failed: Promise<never> }>()
  try {
    await work(async (file, line) => {
      let out = open.get(file)
      if (out === undefined) {
        const stream = createWriteStream(join(to, file), { flags: 'wx', mode: 0o600, flush: true })
        const failed = once(stream, 'error').then(([error]) => {
          throw error
        })
        // Handled where a write waits for it.
        failed.catch(() => undefined)
        out = { stream, lines: 0, failed }
        open.set(file, out)
      }
      out.lines += 1
      if (!out.stream.write(line)) await Promise.race([once(out.stream, 'drain'), out.failed])
    })
    for (const { stream, failed } of open.values()) {
      stream.end()
      await Promise.race([once(stream, 'close'), failed])
    }
  } catch (error) {
    for (const { stream } of open.values()) stream.destroy()
    if (error instanceof GatewayError) throw error
    throw unwritable(to, `${messageOf(error)}.`, error)
  }
  return [...open].map(([file, { lines }]) => ({ file, lines }))
}

function unwritable(to: string, why: string, cause: unknown): GatewayError {
  return new GatewayError('OUTPUT_UNWRITABLE', {
    what: `Cannot write to ${to}.`,
    why,
    act: 'Give an empty directory with --to, on a disk with enough space.',
    cause,
  })
}

// salvage-files.ts: writes the data that salvage finds, one file for each kind:
//
//   payloads.ndjson       pending or in a batch: acknowledged and not delivered
//   held.ndjson           in a held batch: the service may have processed them
//   suspect.ndjson        payloads of chunks with a wrong checksum; an import leaves out lines marked
//                         `suspect`
//   messages.ndjson       kept whole: in quarantine, or waiting for their expression
//   dead-letters.ndjson   as `dead-letters export` writes them
//   state.ndjson          state of the mapping: incomplete payloads, for a person to read
//   unreadable.ndjson     records that could not be decoded, with the reason
//   report.json           what was done, and the number of lines

import { createWriteStream, type WriteStream } from 'node:fs'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { once } from 'node:events'
import { join } from 'node:path'
import { assertNever } from '../../std/assert.ts'
import { GatewayError, messageOf } from '../../std/gateway-error.ts'
import { exportLine, messageLine, payloadLine } from '../../dead-letters/dead-letters.ts'
import type { Salvaged } from '../../spool/spool.ts'

export type SalvageReport = {
  path: string
  steps: readonly string[]
  /** Wrong totals and unreadable records. */
  problems: readonly string[]
  files: readonly { file: string; lines: number }[]
  unreadable: number
}

/** Rejects as openSalvage does, or with OUTPUT_UNWRITABLE. */
export async function salvageTo(path: string, to: string, stop: AbortSignal): Promise<SalvageReport> {
  // Loaded late: it brings the database.
  const { openSalvage } = await import('../../spool/spool.ts')
  await makeEmpty(to)
  const salvage = await openSalvage(path, join(to, 'work'))
  try {
    const files = await writing(to, async (write) => {
      for await (const found of salvage.entries(stop)) {
        const [file, line] = lineOf(found)
        await write(file, line)
      }
    })
    const unreadable = files.find(({ file }) => file === 'unreadable.ndjson')?.lines ?? 0
    const { steps, problems } = salvage
    const report = { path, steps, problems, files, unreadable }
    await writeFile(join(to, 'report.json'), `${JSON.stringify(report, null, 2)}\n`, { flush: true })
    return report
  } finally {
    await salvage.close()
  }
}

function lineOf(found: Salvaged): [file: string, line: string] {
  switch (found.kind) {
    case 'payload':
      return [payloadFile(found), payloadLine(found)]
    case 'message':
      return ['messages.ndjson', messageLine(found.message)]
    case 'deadLetter':
      return ['dead-letters.ndjson', exportLine(found)]
    case 'state': {
      const { key, value } = found
      return ['state.ndjson', `${JSON.stringify({ kind: 'state', key, value: value.toString('base64') })}\n`]
    }
    case 'unreadable': {
      const { key, why, raw } = found
      const bytes = raw === null ? null : raw.toString('base64')
      return ['unreadable.ndjson', `${JSON.stringify({ kind: 'unreadable', key, why, raw: bytes })}\n`]
    }
    default:
      return assertNever(found)
  }
}

function payloadFile({ suspect, batch }: Extract<Salvaged, { kind: 'payload' }>): string {
  if (suspect !== null) return 'suspect.ndjson'
  return batch === null ? 'payloads.ndjson' : 'held.ndjson'
}

async function makeEmpty(to: string): Promise<void> {
  try {
    await mkdir(to, { recursive: true })
    if ((await readdir(to)).length === 0) return
  } catch (error) {
    throw unwritable(to, `${messageOf(error)}.`, error)
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

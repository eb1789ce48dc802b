// audit.ts: the audit log: every change that an operator made, who made it, and what it did. Entry file of
// this folder.
//
// Guarantees
//   A change has a durable line before it begins and one after it ends, in `<spool>/audit.ndjson` (see
//   audit-file.ts). So a change that a crash cut short is in the log, with an unknown outcome. The files have
//   mode 0600 and a size limit; only the oldest lines are ever deleted.
//
//   {"at":1750000000000,"id":"…","change":"dead-letters/purge","request":"all=1&yes=1","by":{…}}
//   {"at":1750000000050,"id":"…","outcome":"done","status":200,"result":{"deadLetters":12},"tookMs":50}
//
// Failures
//   A line cannot be written (full disk): the change goes on, because changes are what frees the disk. The
//   line waits, and is written as soon as that works; until then AUDIT_LOG_FAILED holds. Of more than
//   `waitingMax` lines the oldest are lost with the process. The event `change_made` is in the log of the
//   daemon in any case.
//   A command works on the spool without a daemon: it writes the same lines (src/cli/daemon-client/).
//   A line is damaged: it is left out and counted when the log is read.

import { randomUUID } from 'node:crypto'
import type { Clock, EpochMs } from '../../std/clock.ts'
import { messageOf } from '../../std/gateway-error.ts'
import { bounded } from '../../std/quote.ts'
import type { State, StateSource } from '../../domain/condition-state.ts'
import type { Emit } from '../../domain/event.ts'
import type { Caller } from '../types.ts'
import { auditLines, openAuditFile } from './audit-file.ts'

/** `refused`: it ended with an error. `unknown`: the process ended before the change did. */
export type AuditOutcome = 'done' | 'refused' | 'unknown'

/** `offline`: a command without a daemon. Its names are claims. */
export type ChangeMaker = Caller | { via: 'offline'; user: string | null; sudoUser: string | null }

export type AuditEntry = {
  at: EpochMs
  id: string
  change: string
  /** Parameters of the request. */
  request: string
  by: ChangeMaker
  outcome: AuditOutcome
  status: number | null
  /** Numbers of the answer, or the code and the reason of the error. */
  result: Readonly<Record<string, unknown>>
  tookMs: number | null
}

export type AuditAnswer = {
  /** Newest first. */
  changes: readonly AuditEntry[]
  /** There are more. */
  more: boolean
  /** Lines that cannot be read. */
  damaged: number
}

export type ChangeEnd = { status: number; value: unknown }

export type Audit = StateSource & {
  /** Call the returned function when the change has ended. Never rejects. */
  begin(change: string, request: string, by: ChangeMaker): Promise<(end: ChangeEnd) => Promise<void>>
  /** Writes the lines that wait, where there are some. Never rejects. */
  writeWaiting(): Promise<void>
  close(): Promise<void>
}

const requestLengthMax = 1000
const textLengthMax = 500
const valuesMax = 40
const waitingMax = 200

export function createAudit(
  { clock, emit }: { clock: Clock; emit: Emit },
  { folder, bytesMax }: { folder: string; bytesMax: number },
): Audit {
  const file = openAuditFile(folder, bytesMax)
  /** Lines that are not written yet, and why the first of them could not be; null before it was tried. */
  const waiting: string[] = []
  let why: string | null = null
  let writing: Promise<void> = Promise.resolve()
  return {
    begin,
    writeWaiting: () => (waiting.length === 0 ? Promise.resolve() : (writing = writing.then(writeAll))),
    *states(): Generator<State> {
      if (why !== null) yield { code: 'AUDIT_LOG_FAILED', path: folder, why }
    },
    close: () => file.close(),
  }

  async function begin(change: string, params: string, by: ChangeMaker) {
    const id = randomUUID()
    const at = clock.now()
    const startedMs = clock.monotonic()
    const request = bounded(params, requestLengthMax)
    await write({ at, id, change, request, by })
    return async ({ status, value }: ChangeEnd) => {
      const outcome: AuditOutcome = status === 200 ? 'done' : 'refused'
      const result = resultOf(value)
      const tookMs = Math.round(clock.monotonic() - startedMs)
      await write({ at: clock.now(), id, outcome, status, result, tookMs })
      emit({
        kind: 'change_made',
        change,
        request,
        by: callerText(by),
        outcome,
        result: JSON.stringify(result),
        tookMs,
      })
    }
  }

  /** Resolves when it is written, or could not be. */
  function write(line: object): Promise<void> {
    waiting.push(JSON.stringify(line))
    if (waiting.length > waitingMax) waiting.shift()
    return (writing = writing.then(writeAll))
  }

  async function writeAll(): Promise<void> {
    try {
      for (let line = waiting[0]; line !== undefined; line = waiting[0]) {
        await file.append(line)
        waiting.splice(waiting.indexOf(line), 1)
      }
      why = null
    } catch (error) {
      why = messageOf(error)
    }
  }
}

/** Names are claimed, but for those over TCP. */
export function callerText(by: {
  via: ChangeMaker['via']
  user: string | null
  sudoUser?: string | null | undefined
  address?: string | undefined
}): string {
  if (by.via === 'tcp') return `${by.user ?? 'unknown'} at ${by.address ?? ''} over TCP`
  const sudo = by.sudoUser ? ` (sudo: ${by.sudoUser})` : ''
  const where = by.via === 'socket' ? 'on the socket' : 'by a command without a daemon'
  return `${by.user ?? 'unknown'}${sudo}, as claimed ${where}`
}

/** Numbers, short texts and flags of the answer; of a list its length. */
function resultOf(value: unknown): Record<string, unknown> {
  const result: Record<string, unknown> = {}
  for (const [key, part] of Object.entries(Object(value) as object).slice(0, valuesMax)) {
    if (typeof part === 'string') result[key] = bounded(part, textLengthMax)
    else if (typeof part === 'number' || typeof part === 'boolean') result[key] = part
    else if (Array.isArray(part)) result[key] = part.length
  }
  return result
}

export type AuditQuery = { limit: number; since?: EpochMs; until?: EpochMs }

/** The log in the directory of the spool, also while a daemon writes it. Reads no more than is asked for. */
export async function readAudit(folder: string, { limit, since, until }: AuditQuery): Promise<AuditAnswer> {
  const ends = new Map<string, Line>()
  const changes: AuditEntry[] = []
  let damaged = 0
  for await (const line of auditLines(folder)) {
    const read = lineIn(line)
    if (read === null) damaged += 1
    else if (!('by' in read && 'change' in read)) {
      // Of a change whose beginning was deleted, the end says too little.
      if (!ends.has(read.id)) ends.set(read.id, read)
    } else {
      const { at } = read
      if ((since !== undefined && at < since) || (until !== undefined && at > until)) continue
      if (changes.length >= limit) return { changes, more: true, damaged }
      const end = ends.get(read.id)
      changes.push({ ...unknownEnd, ...read, ...(end && endIn(end)) } as AuditEntry)
    }
  }
  return { changes, more: false, damaged }
}

const unknownEnd = { outcome: 'unknown', status: null, result: {}, tookMs: null } as const

type Line = { id: string; at: EpochMs } & Partial<AuditEntry>

function lineIn(text: string): Line | null {
  try {
    const line: unknown = JSON.parse(text)
    const { id, at } = Object(line) as Partial<Line>
    return typeof id === 'string' && typeof at === 'number' ? (line as Line) : null
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return null
  }
}

function endIn({ outcome = 'unknown', status = null, result = {}, tookMs = null }: Line) {
  return { outcome, status, result, tookMs }
}

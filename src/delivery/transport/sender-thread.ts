// sender-thread.ts: what runs in the thread of sender-worker.ts: hashing, signing, sending, reading the answer.
//
// It decides nothing and remembers nothing but connections and derived keys: everything that an attempt needs
// comes with it, and whatever becomes of it goes back as one Outcome.

import { parentPort } from 'node:worker_threads'
import { assert, assertNever } from '../../std/assert.ts'
import type { Outcome } from '../../domain/outcome.ts'
import { payloadIdIn } from '../../domain/payload.ts'
import type { BatchOperation } from '../../spool/spool.ts'
import { entriesOfBody } from './body-entries.ts'
import type { Credentials } from '../credentials/credentials.ts'
import type { ThreadRequest, ThreadReply } from './sender-worker.ts'
import { createSigner } from './sign.ts'
import type { Sign } from './sign.ts'
import { createSubmitter } from './submit.ts'
import type { Submitter } from './submit.ts'

const port = parentPort
assert(port !== null, 'this file runs in a thread of its own')

const submitters = new Map<number, Submitter>()
const running = new Map<number, AbortController>()
/** Routes whose payloads the ledger wants to know. */
const inLedger = new Set<number>()
/** The last set of credentials of each route, with the key that was derived from it. */
const signers = new Map<number, { credentials: Credentials; sign: Sign }>()

port.on('message', (asked: ThreadRequest) => {
  switch (asked.kind) {
    case 'open':
      submitters.set(asked.route, createSubmitter(asked.options))
      if (asked.ledger) inLedger.add(asked.route)
      return
    case 'submit':
      // Ends in an Outcome whatever happens; a programmer's mistake ends the thread, see sender-worker.ts.
      void submit(asked)
      return
    case 'abort':
      running.get(asked.id)?.abort()
      return
    case 'close':
      // destroy() only rejects for a pool that is destroyed already.
      void close(asked.route)
      return
    default:
      assertNever(asked)
  }
})

async function submit(asked: Extract<ThreadRequest, { kind: 'submit' }>): Promise<void> {
  const { id, route, credentials, signingAt, startedAt, turn, starts } = asked
  const submitter = submitters.get(route)
  assert(submitter !== undefined, 'a route is opened before it is used')
  const body = Buffer.from(asked.body, 0, asked.bytes)
  const stop = new AbortController()
  running.set(id, stop)
  const { outcome, date } = await submitter.submit({
    turn,
    body,
    payloadIds: () => Array.from(starts, (start) => payloadIdIn(body, start)),
    sign: signerOf(route, credentials),
    signingAt,
    startedAt,
    stop: stop.signal,
  })
  running.delete(id)
  const entries = inLedger.has(route) && maySettle(outcome, turn) ? entriesOfBody(body, starts) : null
  tell({ kind: 'ended', id, outcome, date, entries }, entries === null ? [] : [entries.buffer])
}

/** Whatever else it is, the batch goes again. */
function maySettle({ kind }: Outcome, turn: BatchOperation): boolean {
  return (
    kind === 'answered' ||
    kind === 'accepted_single' ||
    kind === 'repeated' ||
    (kind === 'refused' && turn === 'single')
  )
}

function signerOf(route: number, credentials: Credentials): Sign {
  const known = signers.get(route)
  if (known && sameKeys(known.credentials, credentials)) return known.sign
  const sign = createSigner(credentials)
  signers.set(route, { credentials, sign })
  return sign
}

function sameKeys(a: Credentials, b: Credentials): boolean {
  return (
    a.accessKeyId === b.accessKeyId &&
    a.secretAccessKey === b.secretAccessKey &&
    a.sessionToken === b.sessionToken
  )
}

async function close(route: number): Promise<void> {
  await submitters.get(route)?.close()
  submitters.delete(route)
  inLedger.delete(route)
  tell({ kind: 'closed', route })
}

function tell(told: ThreadReply, handedOver: ArrayBuffer[] = []): void {
  port?.postMessage(told, handedOver)
}

// sender-thread.ts: what runs in a thread of thread-link.ts: hashing, signing, sending, reading the
// answer.
//
// It decides nothing and keeps only connections and derived keys. Each attempt brings all that it needs, and
// its result is one Outcome.

import { parentPort } from 'node:worker_threads'
import { promisify } from 'node:util'
import { crc32, gzip } from 'node:zlib'
import { assert, assertNever } from '../../std/assert.ts'
import type { Outcome } from '../../domain/outcome.ts'
import { payloadIdIn } from '../../domain/payload.ts'
import type { BatchOperation } from '../../spool/spool.ts'
import { sameKeys, type Credentials } from '../credentials/access-keys.ts'
import { entriesOfBody } from './body-entries.ts'
import type { ThreadReply, ThreadRequest } from './thread-link.ts'
import { createSentBody } from './sent-body.ts'
import { createSigner } from './sign.ts'
import type { Sign } from './sign.ts'
import { createSubmitter } from './submit.ts'
import type { Submitter } from './submit.ts'

const port = parentPort
assert(port !== null, 'sender-thread.ts runs in a thread of its own')

type Opened = {
  submitter: Submitter
  compress: 'off' | 'gzip'
  ledger: boolean
  /** The last credentials, with the key that was derived from them. */
  signer: { credentials: Credentials; sign: Sign } | null
}

const compress: (bytes: Buffer) => Promise<Buffer> = promisify(gzip)

const nothingSent = { date: null, written: false, bytesSent: 0, entries: null }

const transports = new Map<number, Opened>()
const running = new Map<number, AbortController>()

port.on('message', (request: ThreadRequest) => {
  switch (request.kind) {
    case 'open': {
      const { transport, options, ledger } = request
      const { compress } = options
      transports.set(transport, { submitter: createSubmitter(options), compress, ledger, signer: null })
      return
    }
    case 'submit':
      // Always ends in an Outcome; a programmer's mistake ends the thread, see thread-link.ts.
      void submit(request)
      return
    case 'abort':
      running.get(request.id)?.abort()
      return
    case 'close':
      // destroy() rejects only for a pool that is destroyed already.
      void close(request.transport)
      return
    default:
      assertNever(request)
  }
})

async function submit(request: Extract<ThreadRequest, { kind: 'submit' }>): Promise<void> {
  const { id, credentials, signingAt, startedAt, timeoutMs, operation, starts } = request
  const opened = transports.get(request.transport)
  assert(opened !== undefined, 'a transport is opened before it is used')
  const body = Buffer.from(request.body, 0, request.bytes)
  if (crc32(body) !== request.sum) {
    const message = 'the body in memory is not the one that was written there'
    post({ kind: 'ended', id, slotFree: false, outcome: { kind: 'body_changed', message }, ...nothingSent })
    return
  }
  const stop = new AbortController()
  running.set(id, stop)
  const isCompressed = opened.compress === 'gzip'
  // By the thread pool, so that other attempts continue meanwhile.
  const wire = isCompressed ? await compress(body) : body
  const sent = createSentBody(wire)
  const result = await opened.submitter.submit({
    operation,
    body: wire,
    encoding: isCompressed ? 'gzip' : null,
    sent,
    payloadIds: () => Array.from(starts, (start) => payloadIdIn(body, start)),
    idsInBody: { body, starts },
    sign: signerOf(opened, credentials),
    signingAt,
    startedAt,
    timeoutMs,
    stop: stop.signal,
  })
  running.delete(id)
  if (isCompressed) result.bytesSent = Math.round((result.bytesSent * body.length) / wire.length)
  const entries = opened.ledger && maySettle(result.outcome, operation) ? entriesOfBody(body, starts) : null
  // A compressed body is a copy.
  const slotFree = isCompressed || sent.released()
  post({ kind: 'ended', id, slotFree, ...result, entries }, entries === null ? [] : [entries.buffer])
  // The answer came early, or none came. The memory gets the next batch only when this connection is closed.
  if (!slotFree) sent.discard(() => post({ kind: 'slot_freed', id }))
}

/** After any other outcome the batch is sent again. */
function maySettle({ kind }: Outcome, operation: BatchOperation): boolean {
  return (
    kind === 'answered' ||
    kind === 'accepted_single' ||
    kind === 'repeated' ||
    (kind === 'refused' && operation === 'single')
  )
}

function signerOf(opened: Opened, credentials: Credentials): Sign {
  if (opened.signer === null || !sameKeys(opened.signer.credentials, credentials))
    opened.signer = { credentials, sign: createSigner(credentials) }
  return opened.signer.sign
}

async function close(transport: number): Promise<void> {
  await transports.get(transport)?.submitter.close()
  transports.delete(transport)
  post({ kind: 'closed', transport })
}

function post(reply: ThreadReply, transferred: ArrayBuffer[] = []): void {
  port?.postMessage(reply, transferred)
}

// sender-thread.ts: what runs in the thread of sender-worker.ts: hashing, signing, sending, reading the
// answer.
//
// It decides nothing and keeps only connections and derived keys. Each attempt brings all that it needs, and
// its result is one Outcome.

import { parentPort, type MessagePort } from 'node:worker_threads'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { assert, assertNever } from '../../std/assert.ts'
import type { Outcome } from '../../domain/outcome.ts'
import { payloadIdIn } from '../../domain/payload.ts'
import type { BatchOperation } from '../../spool/spool.ts'
import { sameKeys, type Credentials } from '../credentials/access-keys.ts'
import { entriesOfBody } from './body-entries.ts'
import type { ThreadReply, ThreadRequest } from './sender-worker.ts'
import { createSigner, type Sign } from './sign.ts'
import { createSubmitter, type Submitter } from './submit.ts'

type Opened = {
  submitter: Submitter
  compress: 'off' | 'gzip'
  ledger: boolean
  /** The last credentials, with the key that was derived from them. */
  signer: { credentials: Credentials; sign: Sign } | null
}

const compress: (bytes: Buffer) => Promise<Buffer> = promisify(gzip)

export function serve(port: MessagePort): void {
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
        // Always ends in an Outcome; a programmer's mistake ends the thread, see sender-worker.ts.
        void submit(request)
        return
      case 'abort':
        running.get(request.id)?.abort()
        return
      case 'close':
        // It does not reject.
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
    const body = Buffer.from(request.body)
    const stop = new AbortController()
    running.set(id, stop)
    const isCompressed = opened.compress === 'gzip'
    // By the thread pool, so that other attempts continue meanwhile.
    const wire = isCompressed ? await compress(body) : body
    const result = await opened.submitter.submit({
      operation,
      body: wire,
      encoding: isCompressed ? 'gzip' : null,
      payloadIds: () => Array.from(starts, (start) => payloadIdIn(body, start)),
      sign: signerOf(opened, credentials),
      signingAt,
      startedAt,
      timeoutMs,
      stop: stop.signal,
    })
    running.delete(id)
    if (isCompressed) result.bytesSent = Math.round((result.bytesSent * body.length) / wire.length)
    const entries = opened.ledger && maySettle(result.outcome, operation) ? entriesOfBody(body, starts) : null
    post({ kind: 'ended', id, ...result, entries }, entries === null ? [] : [entries.buffer])
  }

  async function close(transport: number): Promise<void> {
    const opened = transports.get(transport)
    transports.delete(transport)
    await opened?.submitter.close()
    post({ kind: 'closed', transport })
  }

  function post(reply: ThreadReply, transferred: ArrayBuffer[] = []): void {
    port.postMessage(reply, transferred)
  }
}

/** After any other outcome the batch is sent again. */
function maySettle({ kind }: Outcome, operation: BatchOperation): boolean {
  if (kind === 'refused') return operation === 'single'
  return kind === 'answered' || kind === 'accepted_single' || kind === 'repeated'
}

function signerOf(opened: Opened, credentials: Credentials): Sign {
  if (opened.signer === null || !sameKeys(opened.signer.credentials, credentials))
    opened.signer = { credentials, sign: createSigner(credentials) }
  return opened.signer.sign
}

// In the process that starts the thread there is no port.
if (parentPort !== null) serve(parentPort)

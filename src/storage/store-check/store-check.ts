// store-check.ts: whether the files of a database are whole, before LevelDB opens them. Entry file of this
// folder.
//
//   directory   CURRENT, the manifest, the tables that it names and their sizes; always
//   tables      every block of the tables that are not known to be whole; a table never changes
//   logs        every record; a log that is bad before its end is mended
//
// The check is made in a thread (check-worker.ts), so that the daemon answers meanwhile. It reads the files
// with readers of its own (../level-files), which no content can crash, in bounded memory.
//
// A mended log (log-mending.ts) holds what can be read of it; the damaged file stays beside the database. A
// torn end of the newest log is no damage: the write was never acknowledged. A log that is missing or cut
// where a write ends cannot be seen here; the mark of the spool shows it.
//
// Nothing is changed where the directory or a table is damaged: then logs are not mended either.

import { Worker } from 'node:worker_threads'
import { assertNever } from '../../std/assert.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import { restoreKeys } from './thread-damage.ts'
import type { CheckProgress, CheckReport, CheckRequest, CheckStore } from '../level-files/level-files.ts'

/** From the thread. */
export type CheckReply =
  | { kind: 'progress'; progress: CheckProgress }
  | { kind: 'report'; report: CheckReport }
  | { kind: 'failed'; code: string | undefined; message: string }

/** In dist the file of the thread is beside this one, as JavaScript. */
const threadFile = new URL(`./check-worker${import.meta.url.slice(-3)}`, import.meta.url)

/** The readers need a few MiB; their buffers are outside of these limits. */
const resourceLimits = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 96 }

export const checkInThread: CheckStore = async (request, { onProgress, signal }) => {
  signal.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<CheckReport>()
  const thread = new Worker(threadFile, { name: 'check', workerData: request, resourceLimits })
  const onAbort = () => reject(signal.reason as Error)
  signal.addEventListener('abort', onAbort, { once: true })
  thread.on('message', (reply: CheckReply) => {
    switch (reply.kind) {
      case 'progress':
        onProgress(reply.progress)
        return
      case 'report':
        resolve(reply.report)
        return
      case 'failed':
        reject(Object.assign(new Error(reply.message), { code: reply.code }))
        return
      default:
        assertNever(reply)
    }
  })
  thread.on('error', reject)
  thread.on('exit', () => reject(lostThread(request)))
  try {
    const report = await promise
    for (const damage of [report.damage, ...report.mendedLogs.map((log) => log.damage)]) restoreKeys(damage)
    return report
  } finally {
    signal.removeEventListener('abort', onAbort)
    // Each step of mending is atomic, so the thread can be ended at any time.
    await thread.terminate()
  }
}

function lostThread({ path }: CheckRequest): GatewayError {
  return new GatewayError('SPOOL_UNWRITABLE', {
    what: `Cannot check the files of the database at ${path}.`,
    why: 'The thread of the check ended before its report.',
    act: 'Check the memory of the machine. The gateway tries again.',
  })
}

// check-worker.ts: the thread of a check: makes one and ends.

import { parentPort, workerData, type MessagePort } from 'node:worker_threads'
import { codeOf, messageOf } from '../../std/gateway-error.ts'
import type { CheckProgress, CheckRequest } from '../level-files/level-files.ts'
import { checkFiles } from './check-files.ts'
import type { CheckReply } from './store-check.ts'

/** Milliseconds between two reports of the progress. */
const progressEveryMs = 100

export async function serve(port: MessagePort, request: CheckRequest): Promise<void> {
  let reportedAtMs = -Infinity
  // The list names objects to transfer; there are none.
  const post = (reply: CheckReply) => port.postMessage(reply, [])
  const onProgress = (progress: CheckProgress) => {
    const nowMs = performance.now()
    if (nowMs - reportedAtMs < progressEveryMs) return
    reportedAtMs = nowMs
    post({ kind: 'progress', progress })
  }
  try {
    post({ kind: 'report', report: await checkFiles(request, { onProgress }) })
  } catch (error) {
    post({ kind: 'failed', code: codeOf(error), message: messageOf(error) })
  }
}

// In the process that starts the thread there is no port.
if (parentPort !== null) await serve(parentPort, workerData as CheckRequest)

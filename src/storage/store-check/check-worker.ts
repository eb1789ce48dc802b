// check-worker.ts: the thread of a check: makes one and ends.

import { parentPort, workerData } from 'node:worker_threads'
import { codeOf, messageOf } from '../../std/gateway-error.ts'
import type { CheckProgress, CheckRequest } from '../level-files/level-files.ts'
import { checkFiles } from './check-files.ts'
import type { CheckReply } from './store-check.ts'

/** Milliseconds between two reports of the progress. */
const progressEveryMs = 100

let reportedAtMs = -Infinity

function onProgress(progress: CheckProgress): void {
  const nowMs = performance.now()
  if (nowMs - reportedAtMs < progressEveryMs) return
  reportedAtMs = nowMs
  post({ kind: 'progress', progress })
}

function post(reply: CheckReply): void {
  // The list names objects to transfer; there are none.
  parentPort?.postMessage(reply, [])
}

try {
  post({ kind: 'report', report: await checkFiles(workerData as CheckRequest, { onProgress }) })
} catch (error) {
  post({ kind: 'failed', code: codeOf(error), message: messageOf(error) })
}

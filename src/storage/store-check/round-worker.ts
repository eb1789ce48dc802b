// round-worker.ts: the thread of a round of tables: reads them and ends.

import { parentPort, workerData } from 'node:worker_threads'
import { messageOf } from '../../std/gateway-error.ts'
import { readRound, type RoundReply, type TableRound } from './table-round.ts'

function post(reply: RoundReply): void {
  // The list names objects to transfer; there are none.
  parentPort?.postMessage(reply, [])
}

try {
  await readRound(workerData as TableRound, (read) => post({ kind: 'table', read }))
  post({ kind: 'ended' })
} catch (error) {
  post({ kind: 'failed', message: messageOf(error) })
}

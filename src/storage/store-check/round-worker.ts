// round-worker.ts: the thread of a round of tables: reads them and ends.

import { parentPort, workerData, type MessagePort } from 'node:worker_threads'
import { messageOf } from '../../std/gateway-error.ts'
import { readRound, type RoundReply, type TableRound } from './table-round.ts'

export async function serve(port: MessagePort, round: TableRound): Promise<void> {
  // The list names objects to transfer; there are none.
  const post = (reply: RoundReply) => port.postMessage(reply, [])
  try {
    await readRound(round, (read) => post({ kind: 'table', read }))
    post({ kind: 'ended' })
  } catch (error) {
    post({ kind: 'failed', message: messageOf(error) })
  }
}

// In the process that starts the thread there is no port.
if (parentPort !== null) await serve(parentPort, workerData as TableRound)

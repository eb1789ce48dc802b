// shared-sender.ts: the thread that sends, one for all gateways and deliveries that a process of tests starts: to
// start a thread costs more processor time than all the rest of a gateway. It does not keep the process alive.

import { createSenderWorker } from '../../src/delivery/transport/sender-worker.ts'

export const sharedSender = createSenderWorker({}, { ledger: true })

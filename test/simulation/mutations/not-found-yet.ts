// not-found-yet.ts: mistakes that no seed finds so far, each with what must be drawn or looked at before one does.

const noExchange =
  'A requeue is drawn; release, remap, a quarantine and deferred messages are not. Not tried since.'
const noState =
  'No source collects, merges, thins or reads previous values, so no payload depends on the state.'
const allTimed =
  'All messages have a time, so the dedup window hides it. Poison of QoS 2 may become two dead letters.'
const notTried = 'Not tried yet.'
const notIn60 = 'Not within 60 seeds. Why is not known.'
const notTriedSince = 'Its case is drawn and looked at since. Not tried since then.'

/** By the name of the mistake. */
export const notFoundYet: ReadonlyMap<string, string> = new Map([
  [
    'a mark that could not be written stays a condition',
    'Seldom: only the file of the mark must fail, and the process must go on until the end. A fault of single files is not drawn.',
  ],
  ['payloads of a lane that is not live go before fresh ones', notIn60],
  [
    'dead letters that are requeued go before fresh payloads',
    'Many dead letters must be requeued while little else is sent. A test of delivery finds it.',
  ],
  ['chunks end one payload behind a full batch', notIn60],
  ['the bytes of a chunk are not counted in its lane', notIn60],
  ['a lane is sealed while another seal of it cuts a chunk', notIn60],
  ['attempts are not counted in the payload', notIn60],
  ['a payload that was retried is read from a buffer that is used again', notIn60],
  ['a batch is resealed in two writes', notIn60],
  ['the operation of a batch is forgotten in a power cut', notIn60],
  [
    'a held batch is sent after a restart',
    'A held batch that is sent early has the same batchId. The oracle does not compare what is held before and after a restart.',
  ],
  ['a batch of the single operation is sent as a batch after a restart', notIn60],
  ['the next number of a lane is that behind its last chunk', notIn60],
  ['the rotation of a lane is reported before it is durable', notIn60],
  ['a rotated lane still takes fresh payloads', notIn60],
  ['the rotation of a lane is not written', notIn60],
  ['the number of a drained lane is given again', notIn60],
  ['a lane that still holds something is deleted', notIn60],
  ['another spool is opened under the daemon', notIn60],
  [
    'intake does not stop while the store is lost',
    'It ends the process of the seeds by an exception, which is no finding of a seed.',
  ],
  [
    'a lost store is not reported to delivery',
    'Harmless: the first call of the spool that fails tells it too.',
  ],
  ['an exchange is made in two writes', noExchange],
  ['messages overtake an exchange that changes state', noExchange],
  ['two exchanges take the same message', noExchange],
  ['it is forgotten at a restart that a kept message was taken', noExchange],
  ['what only the oldest record of late entries has is forgotten', noState],
  ['late entries stay in force that were put or deleted since', noState],
  ['a message of QoS 2 is remembered although its write failed', allTimed],
  ['a release is answered before it is durable', allTimed],
  ['a released message is not forgotten', notIn60],
  ['a message of QoS 2 is known by its packet identifier alone', notTried],
  ['messages of QoS 2 are forgotten at a restart', allTimed],
  ['a new session is not durable before its CONNACK', notTried],
  ['a message overtakes those that wait', notTried],
  ['messages that wait share their bytes with the socket', notTried],
  ['a message that cannot be mapped closes the commit of others', notTried],
  [
    'the name of a payload leaves out its time',
    'Each message has values of its own. A parked vehicle sends the same ones again.',
  ],
  ['the name of a payload leaves out its values', notTried],
  ['the state of the mapping is not read at the start', notTried],
  ['the totals of the state are not written', notTried],
  ['connections are taken before the records are read', notTried],
  [
    'a stop does not wait for the messages that were read',
    'Harmless to the devices, which send again. The oracle does not ask that a stop leaves nothing behind.',
  ],
  [
    'devices are read on while the daemon stops',
    'Harmless to the devices, which send again. The oracle does not ask that a stop ends by itself in time.',
  ],
  [
    'the spool is closed before the deliveries have ended',
    'A batch whose settle is refused is sent again with its batchId. The oracle does not ask that a stop settles what was answered.',
  ],
  [
    'a stop leaves the spool open',
    'The end of the process closes it. The oracle does not ask that the next start finds a clean end.',
  ],
  [
    'a payload that was accepted once may fail later',
    'The service never takes back what it accepted, for the same batch.',
  ],
  [
    'earlier answers to a batch are forgotten',
    'Not in 15 seeds. Two answers must leave out different payloads of one batch.',
  ],
  [
    'a payload that no answer names counts as delivered',
    'Seldom: two answers to the same batch must leave out the same payload.',
  ],
  [
    'half an answer counts as a whole one',
    'Harmless unless the repeat is cut short as well: a fault should last over the repeat of one batch.',
  ],
  [
    'the usual answer is compared with its first payload only',
    'No answer has a summary that says more than its lists.',
  ],
  [
    'a 5xx counts as a refusal of the batch',
    'Not in 15 seeds. A 500 with a batch that was processed is drawn more often since, and not tried.',
  ],
  ['a 429 is an answer without a meaning', notTried],
  ['a 202 for a batch counts as delivered', notTried],
  ['an outage told inside a 200 by a service that remembers its answers counts as attempts', notTriedSince],
  ['an outage told inside a 200 is no outage', notTriedSince],
  ['answers during an outage count as attempts', notTried],
  ['a 403 for the credentials makes the batch at fault', notTried],
  ['a recovered batch counts as never sent', notTried],
  [
    'the endpoint is never available again',
    'The oracle does not read the state of the endpoint in /status; probes deliver everything.',
  ],
  ['every failure makes the endpoint unavailable for an hour', 'The liveness phase is as long as the wait.'],
  ['Retry-After is not obeyed', notTried],
  ['a batch waits for ever for an acceptance', notTried],
  ['the back-offs go on when the endpoint is available', notTried],
  [
    'a batch of the store before is sent after its loss',
    'Seldom: a submission must be under way while the store is lost, and its answer must come behind the reopening.',
  ],
  ['backfill lanes are never sealed', notTriedSince],
  ['a lone payload waits for a full batch', notTried],
  ['a pass is kept where nothing was sent', notTried],
  [
    'a batch leaves delivery before its settle is durable',
    'Harmless: after a failed settle all batches are read again. What is counted twice in totals is not looked at.',
  ],
  [
    'a settled batch stays in hand',
    'It ends in an endless loop of promises within one turn: virtual time stands still, and the run never ends.',
  ],
  ['DISK_LOW is never cleared', notTried],
  ['dead letters raise no condition', 'Each dead letter has an event too, which raises the same condition.'],
  [
    'dead letters from before the start raise no condition',
    'The oracle allows the conditions of dead letters, and does not ask for them.',
  ],
  [
    'a service that accepts again is not told',
    'The condition NOTHING_ACCEPTED is allowed wherever a device is refused, and outages inside a 200 are seldom long enough.',
  ],
  [
    'the endpoint that is unavailable raises no condition',
    'The oracle looks at conditions at the end only. It must ask for them while their causes hold.',
  ],
  ['an outage told inside a 200 never ends', notTried],
  ['only batches of retry lanes are signs of an outage', notTried],
  ['on_refused_repeat is read the wrong way round', notTried],
  ['what an earlier answer said is forgotten at a 409', notTried],
  ['a refused batch of two payloads is sent as a single one', notTried],
  ['a payload in both lists counts as accepted', notTried],
  ['the delay of a step is that of the step before', notTried],
  ['all types of errors have the default delays', notTried],
  ['the first part of a batch that was cut is not sent', notTried],
  ['a payload alone waits for ever after a restart', notTried],
  ['a service that fails stays available', notTried],
  ['an endpoint that is available again is not told', notTried],
  ['a dead letter does not say which answer made it', notTried],
  ['an answer that does not count uses up a step', notTried],
  ['a delivered payload goes to a retry lane as well', notTried],
])

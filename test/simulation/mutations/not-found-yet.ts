// not-found-yet.ts: mistakes that no seed finds so far, each with what must be drawn or looked at before one does.

const noState = 'Sources collect values and read previous ones since. Not tried since.'
const allTimed =
  'Messages without a time are sent with QoS 2 since, and devices are away or lose their memory. Not tried since.'
const seldomOut =
  'Looked at. Endpoints are unavailable in too few seeds: with a delivery.backoff.max of 2 s they would be in more.'
const notTried = 'Not tried yet.'
const notIn60 = 'Not within 60 seeds. Why is not known.'

/** By the name of the mistake. */
export const notFoundYet: ReadonlyMap<string, string> = new Map([
  ['a lane is sealed while another seal of it cuts a chunk', notIn60],
  ['a payload that was retried is read from a buffer that is used again', notIn60],
  ['a batch is resealed in two writes', notIn60],
  ['the next number of a lane is that behind its last chunk', notIn60],
  ['the rotation of a lane is reported before it is durable', notIn60],
  ['the rotation of a lane is not written', notIn60],
  ['the number of a drained lane is given again', notIn60],
  ['a lane that still holds something is deleted', notIn60],
  ['what only the oldest record of late entries has is forgotten', noState],
  ['late entries stay in force that were put or deleted since', noState],
  ['a message of QoS 2 is remembered although its write failed', allTimed],
  ['a release is answered before it is durable', allTimed],
  ['messages of QoS 2 are forgotten at a restart', allTimed],
  [
    'a payload that was accepted once may fail later',
    'The service never takes back what it accepted, for the same batch.',
  ],
  [
    'earlier answers to a batch are forgotten',
    'Not in 15 seeds. Two answers must leave out different payloads of one batch.',
  ],
  [
    'half an answer counts as a whole one',
    'Harmless unless the repeat is cut short as well: a fault should last over the repeat of one batch.',
  ],
  ['a 202 for a batch counts as delivered', notIn60],
  [
    'an outage told inside a 200 by a service that remembers its answers counts as attempts',
    'Not in 150 seeds: the payload must be at its last attempt, in a batch whose first answer was lost in an outage.',
  ],
  ['a 403 for the credentials makes the batch at fault', notIn60],
  ['a recovered batch counts as never sent', notIn60],
  ['Retry-After is not obeyed', notTried],
  ['a batch waits for ever for an acceptance', notIn60],
  ['the back-offs go on when the endpoint is available', notTried],
  [
    'a batch of the store before is sent after its loss',
    'Seldom: a submission must be under way while the store is lost, and its answer must come behind the reopening.',
  ],
  ['a pass is kept where nothing was sent', notTried],
  [
    'a settled batch stays in hand',
    'It ends in an endless loop of promises within one turn: virtual time stands still, and the run never ends.',
  ],
  ['DISK_LOW is never cleared', notTried],
  ['only batches of retry lanes are signs of an outage', notIn60],
  ['what an earlier answer said is forgotten at a 409', notIn60],
  ['a refused batch of two payloads is sent as a single one', notTried],
  ['all types of errors have the default delays', notTried],
  ['a payload alone waits for ever after a restart', notTried],
  [
    'an exchange is made in two writes',
    'The process must end between two writes of a requeue or a release; they are drawn, and so is the end of the process after them. Not in 40 seeds.',
  ],
  [
    'messages overtake an exchange that changes state',
    'Not in 40 seeds. Values that are collected must time out while others of their vehicle arrive.',
  ],
  [
    'two exchanges take the same message',
    'Two people requeue or release the same. Not in 40 seeds: both must be read before one of them is written.',
  ],
  [
    'it is forgotten at a restart that a kept message was taken',
    'What is in quarantine is released since. Not tried since: the newest kept message must be taken before a restart.',
  ],
  [
    'a stop does not wait for the messages that were read',
    'Messages wait while the spool is congested, and seeds send too little for that. What a stop read and did not acknowledge is looked at.',
  ],
  [
    'a new session is not durable before its CONNACK',
    'Not in 40 seeds. The power is cut at answers to devices since; not tried since.',
  ],
  [
    'attempts are not counted in the payload',
    'The steps are those of the lane. The number in the payload is a further bound, and only `batches show` has it.',
  ],
  [
    'on_refused_repeat is read the wrong way round',
    'Not in 30 seeds. The oracle must ask that a batch that may be processed is held.',
  ],
  ['an answer that does not count uses up a step', 'Not in 30 seeds.'],
  [
    'a 429 is an answer without a meaning',
    'Not in 40 seeds: any other status has the same back-off. Only Retry-After tells them apart.',
  ],
  ['connections are taken before the records are read', 'Not in 40 seeds.'],
  [
    'a message overtakes those that wait',
    'Not in 40 seeds: messages must wait for the store, and others come in the moment in which it is back.',
  ],
  [
    'messages that wait share their bytes with the socket',
    'Not in 40 seeds. The simulated socket must use its buffers again.',
  ],
  [
    'a message of QoS 2 is known by its packet identifier alone',
    'Not in 40 seeds. Devices that are away lose their memory since; not tried since.',
  ],
  ['the endpoint is never available again', seldomOut],
  ['the endpoint that is unavailable raises no condition', seldomOut],
  ['an endpoint that is available again is not told', seldomOut],
  ['every failure makes the endpoint unavailable for an hour', seldomOut],
  ['a service that fails stays available', seldomOut],
  [
    'intake does not stop while the store is lost',
    'It ends the process of the seeds by an exception, which is a finding since. Not tried since.',
  ],
  [
    'a mark that could not be written stays a condition',
    'Seldom: only the file of the mark must fail, and the process must go on until the end.',
  ],
  [
    'a released message is not forgotten',
    'Equal messages of QoS 2 come under a released identifier since. Not tried since.',
  ],
  [
    'the usual answer is compared with its first payload only',
    'An answer whose list is shorter than its summary is drawn since. Not tried since.',
  ],
  [
    'the bytes of a chunk are not counted in its lane',
    'The bytes of lanes are looked at since. Not tried since.',
  ],
  ['the name of a payload leaves out its time', 'Parked vehicles are drawn since. Not tried since.'],
  [
    'the spool is closed before the deliveries have ended',
    'Looked at: what was answered before a stop in order must not come again. A seed found it before stops came at writes; not in 60 since.',
  ],
])

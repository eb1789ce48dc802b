// not-found-yet.ts: mistakes that no seed finds so far, each with what must be drawn or looked at before one does.

const notTried = 'Services fail for longer and disks are slow since. Not tried with these draws.'

/** By the name of the mistake. */
export const notFoundYet: ReadonlyMap<string, string> = new Map([
  [
    'a lane is sealed while another seal of it cuts a chunk',
    'Two seals of a lane must meet while a chunk is read from the disk: a backlog of large chunks after a restart, on a slow disk.',
  ],
  [
    'a payload that was retried is read from a buffer that is used again',
    'Not within 60 seeds. Why is not known.',
  ],
  [
    'the number of a drained lane is given again',
    'It needs two rotations, a backlog that drains, a restart, and another rotation: long seeds with a service that is down often.',
  ],
  ['what only the oldest record of late entries has is forgotten', notTried],
  ['late entries stay in force that were put or deleted since', notTried],
  [
    'half an answer counts as a whole one',
    'Looked at. The batch is sent again all the same, and only counts as a success for the endpoint: the oracle must count cut answers that name some payloads as failures.',
  ],
  [
    'only batches of retry lanes are signs of an outage',
    'Rules without delays and longer outages are drawn since. Not in 10 of them.',
  ],
  [
    'a pass is kept where nothing was sent',
    `A probe must send nothing, because its seal finds nothing or the store is lost at that moment. ${notTried}`,
  ],
  [
    'what an earlier answer said is forgotten at a 409',
    'The oracle excuses no more what was accepted before a 409, and services answer 409 more often since. Not in 9 seeds with such a service.',
  ],
  [
    'a payload alone waits for ever after a restart',
    'A payload that is refused alone must be under way when the process ends. The oracle asks for its end within 40 s since. Not in 4 such seeds.',
  ],
  [
    'an exchange is made in two writes',
    'It is made so that it is two writes since: before, both were in one. Not tried since.',
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
    `The newest kept message must be taken before a restart. ${notTried}`,
  ],
  [
    'a stop does not wait for the messages that were read',
    'Messages wait while the spool is congested, and seeds send too little for that. What a stop read and did not acknowledge is looked at.',
  ],
  [
    'a new session is not durable before its CONNACK',
    'The power is cut at new sessions since; only a disk that is slow shows it. Not in 9 seeds with both.',
  ],
  [
    'attempts are not counted in the payload',
    'The steps are those of the lane. The number in the payload is a further bound, and only `batches show` has it.',
  ],
  [
    'a message overtakes those that wait',
    'Messages must wait for the store, and others come in the moment in which it is back.',
  ],
  [
    'a message of QoS 2 is known by its packet identifier alone',
    `Devices that are away lose their memory since. ${notTried}`,
  ],
  ['a service that fails stays available', `The oracle counts failures in a row since. ${notTried}`],
  [
    'the back-offs go on when the endpoint is available',
    'Looked at. No rule: a batch must be sent at once when the endpoint is available, where nothing else takes its place.',
  ],
  [
    'the usual answer is compared with its first payload only',
    `An answer whose list is shorter than its summary is drawn since. ${notTried}`,
  ],
])

// custody-mutations.ts: mistakes in custody, and between a message engine and the spool. Seeds of the theme `custody` find
// them.

import type { Mutation } from '../mutations.ts'

const ofCustody: readonly Omit<Mutation, 'theme'>[] = [
  // ---- when a message is acknowledged
  {
    name: 'a held batch stops what the engine has behind it',
    file: 'ingest/custody/custody.ts',
    find: 'isCopied: heldCopies.isCopied,',
    replace: 'isCopied: () => false,',
  },
  {
    name: 'the engine gets its acknowledgement at the commit',
    file: 'ingest/message-sources/message-feed.ts',
    find: '    if (custody !== null) {\n      uncollected.add(partition)\n      return\n    }\n',
    replace: '    if (custody !== null) uncollected.add(partition)\n',
  },
  {
    name: 'custody does not wait for retry lanes',
    file: 'ingest/custody/custody-units.ts',
    find: "if (role.kind === 'retry' && role.step === step) marks.set(id, appended)",
    replace: "if (role.kind === 'retry' && role.step > 99) marks.set(id, appended)",
  },
  {
    name: 'custody waits for the first step of retries alone',
    file: 'ingest/custody/custody-units.ts',
    find: "return lanes.some(({ role }) => role.kind === 'retry' && role.step > step)",
    replace: 'return lanes.length < step',
  },
  {
    name: 'custody does not wait for the copies of dead letters',
    file: 'ingest/custody/custody-units.ts',
    find: "return places.copiedTo < mark('dead_letters') ? place : null",
    replace: 'return null',
  },
  {
    name: 'a settle that puts payloads back to an earlier step is not counted',
    file: 'spool/batches/settle.ts',
    find: '      if (movesBack) counters.movedBack += 1\n',
    replace: '',
  },
  // ---- parking
  {
    name: 'parked entries that come back are thrown away',
    file: 'ingest/custody/take-back.ts',
    find: 'if (isKnown(entry.payload.provider)) spool.append(entry.payload)\n',
    replace: 'if (isKnown(entry.payload.provider)) void entry\n',
  },
  {
    name: 'parked entries are never stored when they are due',
    file: 'ingest/custody/custody.ts',
    find: '    takeBack.storeDue()\n',
    replace: '',
  },
  // ---- connections to the engine
  {
    name: 'acknowledgements name the delivery after the last one',
    file: 'ingest/amqp/queue-link/queue-consumer.ts',
    find: 'ackTarget.fields.deliveryTag = position\n',
    replace: 'ackTarget.fields.deliveryTag = position + 1\n',
  },
  {
    name: 'a queue whose connection was lost is not taken again',
    file: 'ingest/amqp/queue-link/queue-link.ts',
    find: 'cancelRetry = clock.after(retryInMs, connect)',
    replace: 'cancelRetry = clock.after(retryInMs * 1000, connect)',
  },
  {
    name: 'what came while there was no room stays in the consumer',
    file: 'ingest/amqp/queue-link/queue-consumer.ts',
    find: 'while (next < waiting.length && feed.room(partition) > 0) {',
    replace: 'while (next < waiting.length && feed.room(partition) > 1e9) {',
  },
]

export const custodyMutations: readonly Mutation[] = ofCustody.map((one) => ({ ...one, theme: 'custody' }))

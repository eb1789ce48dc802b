// counted-conditions.ts: the conditions that follow a counter. Not every dead letter and every drop has an
// event of its own, so the counters are compared with what the events raised (event-conditions.ts), and the
// rest is raised too.

import { plural } from '../../std/quantity.ts'

export const countedConditions = {
  DEAD_LETTERS: {
    what: (count: number) => `${plural(count, 'new dead letter')}.`,
    why: 'The log has the reasons (message_unmappable, payload_dead_lettered).',
  },
  MESSAGES_DROPPED: {
    what: (count: number) => `Dropped ${plural(count, 'QoS 0 message')}. The data is lost.`,
    why: 'The spool accepted no messages when they arrived.',
  },
} as const

/** Where some of the new ones are there no more. */
export function keptDeadLetters(kept: number) {
  return {
    what: (count: number) =>
      `${plural(count, 'new dead letter')}, ${kept} ${kept === 1 ? 'is' : 'are'} kept now.`,
  }
}

/** Those of earlier runs, as far as they are not counted as new ones. */
export function waitingDeadLetters(deadLetters: number) {
  return {
    what: `${plural(deadLetters, 'dead letter')} from before the start ${deadLetters === 1 ? 'waits' : 'wait'}.`,
    why: 'They were neither requeued nor purged.',
    present: deadLetters,
  }
}

export type CountedCode = keyof typeof countedConditions

// clock-events.ts: the events of the clock of this machine: whether its time is known, as service and system
// say, and as devices show it.

import { formatDuration, plural } from '../../std/quantity.ts'
import type { EventName, EventOf } from '../../domain/event.ts'
import { offsetText } from './event-text.ts'
import type { EventTable } from './types.ts'

type ClockEvent = Extract<EventName, `clock_${string}`>

const sources = {
  kernel: 'the operating system keeps the clock synchronised',
  config: 'clocks.trust_local says that the clock is right',
  devices: 'most devices agree with the clock of this machine, and the service does not',
  service: 'the answers of the service have a time',
}

export const clockEvents: EventTable<ClockEvent> = {
  clock_known: {
    meaning:
      'The time of the gateway is known from here on, or from another source. Device times are checked.',
    level: { oneOf: ['info', 'warn'], of: ({ isDisputed }) => (isDisputed ? 'warn' : 'info') },
    text: knownText,
    repeats: ({ knownBy, isDisputed }) => `${knownBy}|${isDisputed}`,
  },
  clock_stepped: {
    level: 'warn',
    repeats: () => '',
    raises: {
      CLOCK_STEPPED: ({ byMs }) => ({
        what:
          `The clock of this machine was set ${byMs > 0 ? 'forward' : 'back'} by ` +
          `${formatDuration(Math.abs(byMs))} while the gateway ran.`,
        why: 'It was wrong before or is wrong now. Device times are checked again when the time is known.',
      }),
    },
  },
  clock_verdicts_corrected: {
    level: 'warn',
    raises: {
      CLOCK_STEPPED: (event) => ({
        what: `The clock of this machine was wrong. ${correctedText(event)}`,
        why: 'The times of healthy devices seemed to be in the future (FUTURE) or long ago (PAST).',
      }),
    },
  },
}

function knownText({ knownBy, offsetMs, isDisputed }: EventOf<'clock_known'>): string {
  if (isDisputed)
    return (
      'The clock of this machine counts as right, and the service says otherwise. A device time is in the ' +
      'future only if it is ahead of both.'
    )
  const offset = Math.abs(offsetMs) < 1000 ? '' : ` The clock is ${offsetText(offsetMs)} it.`
  return `The time is known: ${sources[knownBy]}.${knownBy === 'service' ? offset : ''}`
}

function correctedText({ messages, payloads, dead, keptAgain }: EventOf<'clock_verdicts_corrected'>): string {
  const kept = keptAgain === 0 ? '' : ` ${plural(keptAgain, 'message')} stay: their time is wrong.`
  return (
    `Released ${plural(messages, 'message')} from quarantine: ${plural(payloads, 'payload')}, ` +
    `${plural(dead, 'dead letter')}.${kept}`
  )
}

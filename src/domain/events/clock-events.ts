// clock-events.ts: the events of the clock of this machine: whether its time is known, as service and system
// say, and as devices show it.

import { formatDuration, plural } from '../../std/quantity.ts'
import type { KnownBy } from '../arrival.ts'
import { count, dead, event, field, payloads } from './events.ts'
import { offsetText } from './event-text.ts'

const sources = {
  kernel: 'the operating system keeps the clock synchronised',
  config: 'clocks.trust_local says that the clock is right',
  devices: 'most devices agree with the clock of this machine, and the service does not',
  service: 'the answers of the service have a time',
}

export const clockEvents = {
  clock_known: event({
    fields: {
      knownBy: field<KnownBy>('who says so: the system, the config, the devices or the service'),
      offsetMs: field<number>('clock of the service minus clock of this machine, in ms'),
      isDisputed: field<boolean>('whether the clock counts as right and the service says otherwise'),
    },
    meaning:
      'The time of the gateway is known from here on, or from another source. Device times are checked.',
    level: { oneOf: ['info', 'warn'], of: ({ isDisputed }) => (isDisputed ? 'warn' : 'info') },
    text: knownText,
    repeats: ({ knownBy, isDisputed }) => `${knownBy}|${isDisputed}`,
  }),
  clock_stepped: event({
    fields: { byMs: field<number>('by how much the clock was set, in ms') },
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
  }),
  clock_verdicts_corrected: event({
    fields: {
      messages: count('messages that left the quarantine'),
      payloads,
      dead,
      keptAgain: count('messages that stay'),
    },
    level: 'warn',
    raises: {
      CLOCK_STEPPED: (event) => ({
        what: `The clock of this machine was wrong. ${correctedText(event)}`,
        why: 'The times of healthy devices seemed to be in the future (FUTURE) or long ago (PAST).',
      }),
    },
  }),
}

type Known = { knownBy: KnownBy; offsetMs: number; isDisputed: boolean }

function knownText({ knownBy, offsetMs, isDisputed }: Known): string {
  if (isDisputed)
    return (
      'The clock of this machine counts as right, and the service says otherwise. A device time is in the ' +
      'future only if it is ahead of both.'
    )
  const offset = Math.abs(offsetMs) < 1000 ? '' : ` The clock is ${offsetText(offsetMs)} it.`
  return `The time is known: ${sources[knownBy]}.${knownBy === 'service' ? offset : ''}`
}

type Corrected = Record<'messages' | 'payloads' | 'dead' | 'keptAgain', number>

function correctedText({ messages, payloads, dead, keptAgain }: Corrected): string {
  const kept = keptAgain === 0 ? '' : ` ${plural(keptAgain, 'message')} stay: their time is wrong.`
  return (
    `Released ${plural(messages, 'message')} from quarantine: ${plural(payloads, 'payload')}, ` +
    `${plural(dead, 'dead letter')}.${kept}`
  )
}

// clock-event.ts: the events of the clock of this machine, and of how the time is known.

import type { KnownBy } from '../arrival.ts'
import { field } from './event-fields.ts'

const offsetMs = field<number>('clock of the service minus clock of this machine, in ms')

export const clockEventFields = {
  clock_known: {
    knownBy: field<KnownBy>('who says so: the system, the config, the devices or the service'),
    offsetMs: field<number>(offsetMs.meaning),
    isDisputed: field<boolean>('whether the clock counts as right and the service says otherwise'),
  },
  clock_stepped: { byMs: field<number>('by how much the clock was set, in ms') },
} as const

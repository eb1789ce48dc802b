// current.ts: the machine on which the daemon runs now. The modules in `node/` are loaded once in a process
// and serve one machine after the other.

import type { SimDisk } from './disk.ts'
import type { Machine } from './machine.ts'

export const current: { machine: Machine | null; disk: SimDisk | null } = { machine: null, disk: null }

export function machine(): Machine {
  if (current.machine === null) throw new Error('no simulated machine is switched on')
  return current.machine
}

// os.ts: node:os of the simulated machine.

import * as real from 'node:os'
import { machine } from '../machine/current.ts'

export * from 'node:os'

export const hostname = () => machine().hostname
export const uptime = () => machine().kernel.monotonicMs / 1000

const all = { ...real, hostname, uptime }
export default all
export { all as 'module.exports' }

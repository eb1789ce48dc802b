// timers.ts: node:timers in virtual time.

import { clearTimeout, setImmediate, setInterval, setTimeout } from '../machine/globals.ts'

export { clearTimeout, setImmediate, setInterval, setTimeout }
export { clearTimeout as clearImmediate, clearTimeout as clearInterval }

const all = {
  setTimeout,
  setInterval,
  setImmediate,
  clearTimeout,
  clearInterval: clearTimeout,
  clearImmediate: clearTimeout,
}
export default all
export { all as 'module.exports' }

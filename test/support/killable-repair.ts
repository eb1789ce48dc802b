// killable-repair.ts: a program that repairs a spool and kills itself behind one of its steps.

import { repairSpool } from '../../src/spool/spool.ts'

const [, , path = '', killAfter = ''] = process.argv
let steps = 0
await repairSpool(path, {
  apply: true,
  backup: null,
  purge: false,
  now: () => Date.now(),
  signal: new AbortController().signal,
  onStep() {
    steps += 1
    if (steps === Number(killAfter)) process.kill(process.pid, 'SIGKILL')
  },
})

// kill-at-call.ts: loaded before a program (`--import`), it kills the process with signal 9 right after the
// call number KILL_AT_CALL that changes a file or a directory below KILL_BELOW. Calls of worker threads count as
// well (each thread by itself), and one of them ends the whole process. What LevelDB writes itself is not counted.

import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const killAt = Number(process.env['KILL_AT_CALL'])
const below = process.env['KILL_BELOW'] ?? ''
const changing = [
  'copyFile',
  'link',
  'mkdir',
  'mkdtemp',
  'open',
  'rename',
  'rm',
  'rmdir',
  'unlink',
  'writeFile',
] as const
let calls = 0

function countCall(args: readonly unknown[]): void {
  if (!args.some((arg) => typeof arg === 'string' && arg.startsWith(below))) return
  calls += 1
  if (calls === killAt) process.kill(process.pid, 'SIGKILL')
}

type Calls = Record<string, (...args: unknown[]) => unknown>

const promises = fs.promises as unknown as Calls
const sync = fs as unknown as Calls
for (const name of changing) {
  const [call, callSync] = [promises[name]!, sync[`${name}Sync`]!]
  promises[name] = async (...args) => {
    const result = await call(...args)
    countCall(args)
    return result
  }
  sync[`${name}Sync`] = (...args) => {
    const result = callSync(...args)
    countCall(args)
    return result
  }
}
syncBuiltinESMExports()

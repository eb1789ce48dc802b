// kill-each-call.ts: runs a program again and again, killed one call later each time (kill-at-call.ts).

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { dirname, join } from 'node:path'

/** More calls than any program here makes. */
const callsMax = 500

/**
 * Runs `program` killed after its first call, after its second, and so on, until it ends by itself. `prepare` gives
 * its arguments for each run, the last of which is a path in a folder of its own: only calls below that folder count.
 * `killed` judges what a kill left. Returns the number of kills.
 */
export async function killAtEachCall(
  program: string,
  prepare: () => Promise<string[]>,
  killed: (args: readonly string[], call: number) => Promise<void>,
): Promise<number> {
  const preload = join(import.meta.dirname, 'kill-at-call.ts')
  for (let call = 1; call <= callsMax; call += 1) {
    const args = await prepare()
    const file = join(import.meta.dirname, program)
    const child = spawn(process.execPath, ['--import', preload, file, ...args], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, KILL_AT_CALL: String(call), KILL_BELOW: dirname(args.at(-1) ?? '') },
    })
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
    if (signal !== 'SIGKILL') {
      if (code !== 0) throw new Error(`${program} ended with ${code ?? signal} where it was not killed`)
      return call - 1
    }
    await killed(args, call)
  }
  throw new Error(`${program} makes more than ${callsMax} calls`)
}

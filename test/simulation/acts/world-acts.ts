// world-acts.ts: what happens to devices and to the clock of the machine.

import { synchronizedPath } from '../daemon.ts'
import type { Machine } from '../machine/machine.ts'
import type { EndAct, World } from './act.ts'

/** Where a clock starts that was never set: when systemd was built. */
const startOfBuildMs = Date.UTC(2024, 2, 1)
/** Of a device. The end of a run waits for it. */
const awayMsMax = 240_000

export function dropAct({ fleet }: World): undefined {
  fleet.dropOne()
}

/**
 * A device does not hear the answers, and stays away over some ends of the gateway; then it sends again what was not
 * acknowledged.
 */
export function awayAct(world: World): undefined {
  const { fleet, machine, daemon, random, plan } = world
  const { kernel } = machine
  const deafMs = random.below(10_000)
  const awayMs = random.below(Math.min(plan.safetyMs, awayMsMax))
  fleet.sendAway({ deafMs, awayMs, losesMemory: random.chance(0.4) })
  let atMs = deafMs
  for (let ends = random.pick([0, 0, 1, 2]); ends > 0; ends -= 1) {
    atMs += 500 + random.below(20_000)
    kernel.at(atMs, () => {
      if (world.isSwapped || world.isSettling) return
      world.steps.push(
        `${(kernel.monotonicMs / 1000).toFixed(3)} the end of the process, with a device away\n`,
      )
      machine.kill()
      kernel.at(random.below(3000), daemon.start)
    })
  }
}

/** As systemd-timesyncd shows with each answer of its server that the clock is right. */
export function showSynchronized(machine: Machine): void {
  const { kernel, disk } = machine
  if (Math.abs(kernel.wallMs - kernel.trueMs) < 1000) disk.world.write(synchronizedPath, '')
  kernel.at(64_000, () => showSynchronized(machine))
}

/** Of a machine whose clock needs the network: it starts at a time of before, and is set some time later. */
export function bootClock({ machine, fleet, random }: World): void {
  const { kernel, disk } = machine
  const { bootId } = machine
  disk.world.remove(synchronizedPath)
  set(random.pick([0, startOfBuildMs, kernel.trueMs - random.below(20 * 86_400_000)]))
  kernel.at(random.below(90_000), () => {
    // The next boot has its own.
    if (machine.bootId !== bootId) return
    set(kernel.trueMs)
  })

  function set(wallMs: number): void {
    kernel.stepWall(wallMs - kernel.wallMs)
    fleet.clockStepped()
  }
}

/** The wall clock of the machine is set, and set right again. */
export function clockAct({ machine: { kernel }, fleet, random }: World): EndAct {
  const byMs = random.pick([-1, 1]) * random.pick([10_000, 250_000, 3_600_000, 40_000_000])
  step(byMs)
  return () => step(-byMs)

  function step(ms: number): void {
    kernel.stepWall(ms)
    fleet.clockStepped()
  }
}

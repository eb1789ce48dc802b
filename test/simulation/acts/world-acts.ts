// world-acts.ts: what happens to devices and to the clock of the machine.

import type { EndAct, World } from './act.ts'

export function dropAct({ fleet }: World): undefined {
  fleet.dropOne()
}

/**
 * A device does not hear the answers, and stays away over some ends of the gateway; then it sends again what was not
 * acknowledged.
 */
export function awayAct(world: World): undefined {
  const { fleet, machine, daemon, random } = world
  const { kernel } = machine
  const deafMs = random.below(20_000)
  fleet.sendAway({ deafMs, awayMs: random.below(240_000), losesMemory: random.chance(0.2) })
  let atMs = deafMs
  for (let ends = random.below(3); ends > 0; ends -= 1) {
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

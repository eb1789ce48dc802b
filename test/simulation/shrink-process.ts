// shrink-process.ts: makes a seed that fails smaller, and prints the shortest command that still fails: without kinds of
// faults, with fewer devices, with a shorter safety phase. What is tried is kept where the seed fails with it.
// `npm run simulate -- --seed N --seeds 1 --shrink` runs it.

import { faultKinds } from './plan.ts'
import { runSeed, type Smaller } from './simulation.ts'

type Start = { first: number } & Smaller

const { first: seed, ...start } = JSON.parse(process.env['SIMULATION'] ?? '{}') as Start
const devicesMax = 6

// As each process of seeds begins.
await runSeed(0, { isWeek: false, without: [], devices: 1, safetyS: null })

let smallest: Smaller = start
let wrong = await failure(smallest)
if (wrong === null) process.stdout.write(`seed ${seed} does not fail\n`)
else {
  for (const kind of faultKinds) await attempt({ ...smallest, without: [...smallest.without, kind] })
  for (let devices = 1; devices < (smallest.devices ?? devicesMax); devices += 1)
    if (await attempt({ ...smallest, devices })) break
  for (const safetyS of [5, 15, 30, 60, 180, 300])
    if (safetyS < (smallest.safetyS ?? Infinity) && (await attempt({ ...smallest, safetyS }))) break
  process.stdout.write(`${commandOf(smallest)}\n`)
  for (const what of wrong.slice(0, 5)) process.stdout.write(`  ${what}\n`)
}

async function attempt(smaller: Smaller): Promise<boolean> {
  const found = await failure(smaller)
  if (found === null) return false
  smallest = smaller
  wrong = found
  return true
}

async function failure(smaller: Smaller): Promise<readonly string[] | null> {
  const run = await runSeed(seed, smaller)
  return run.wrong.length > 0 ? run.wrong : null
}

function commandOf({ isWeek, without, devices, safetyS }: Smaller): string {
  return [
    `npm run simulate -- --seed ${seed} --seeds 1`,
    isWeek ? ' --week' : '',
    without.length > 0 ? ` --without ${without.join(',')}` : '',
    devices === null ? '' : ` --devices ${devices}`,
    safetyS === null ? '' : ` --safety ${safetyS}`,
  ].join('')
}

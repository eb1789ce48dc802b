// device-plans.ts: which devices a seed has.

import type { Random } from '../../support/random.ts'
import type { ContentKind, Poison } from './contents.ts'
import { isSessionSteady, type DevicePlan } from './fleet.ts'

type Options = {
  providers: readonly { name: string; mayFail: boolean }[]
  everyMs: number
}

const kinds: readonly ContentKind[] = [
  ...(['plain', 'plain', 'plain', 'parked', 'untimed', 'parkedUntimed', 'several'] as const),
  ...(['differences', 'differences', 'parts'] as const),
]
const timed: readonly ContentKind[] = ['plain', 'parked']
/** Seeds in which most clocks of devices are ahead. */
const aheadShare = 0.06
/** Seeds in which devices have long names. */
const longShare = 0.2
/** Devices whose equal messages of QoS 2 come one after the other under one identifier. */
const alikeShare = 0.08
const poisonsOfAll: readonly Poison[] = ['an unknown topic', 'a topic with a wildcard', 'too large']
const poisonsOf: Readonly<Record<ContentKind, readonly Poison[]>> = {
  plain: ['not JSON', 'wrong types', 'a list', 'no bytes', ...poisonsOfAll],
  parked: ['not JSON', 'wrong types', 'a list', 'no bytes', ...poisonsOfAll],
  untimed: ['not JSON', ...poisonsOfAll],
  parkedUntimed: ['not JSON', ...poisonsOfAll],
  several: ['not JSON', 'wrong types', 'a bad vehicle', 'a bad vehicle', ...poisonsOfAll],
  differences: ['not JSON', 'wrong types', 'a list', ...poisonsOfAll],
  parts: poisonsOfAll,
}

export function drawDevices(random: Random, { providers, everyMs }: Options): DevicePlan[] {
  const isFast = random.chance(0.15)
  // Of several whose clocks are ahead, a person releases what one of them sent.
  const isAhead = random.chance(aheadShare)
  // What is remembered of each device is then so large that a small spool moves it.
  const ending = random.chance(longShare) ? `-${'n'.repeat(220)}` : ''
  return Array.from({ length: 1 + random.below(4) }, (_, index): DevicePlan => {
    const burst = isFast ? random.pick([1, 5, 12, 25]) : random.pick([1, 1, 1, 5])
    const isAlike = random.chance(alikeShare)
    const kind = isAlike ? 'parkedUntimed' : random.pick(isAhead ? timed : kinds)
    const provider = random.pick(providers)
    // What depends on the message before needs each one, and needs them in order.
    const isOrdered = kind === 'differences' || kind === 'parts'
    const anyQos = [[1], [1], [2], [2], [1, 2], [0, 1, 2], [0]] as const
    const orderedQos = [[1], [1], [2]] as const
    const qos = isAlike ? [2 as const] : random.pick<readonly (0 | 1 | 2)[]>(isOrdered ? orderedQos : anyQos)
    const cleanShare = isAlike ? 0 : random.pick([0, 0, 1, 0.3])
    // The first message of QoS 1 under an identifier that is used again at once may be taken for the one before. A
    // session knows which one of QoS 2 is released.
    const version = random.pick([4, 5] as const)
    const expiriesS = isAlike
      ? [86_400]
      : random.pick([[86_400], [86_400], [86_400, 0], [86_400, 20], [86_400, 20, 0]])
    const isSteady = isSessionSteady({ cleanShare, version, expiriesS })
    const isExact = qos.length === 1 && qos[0] === 2 && cleanShare === 0 && isSteady
    const isAnyIdentifier = kind !== 'parkedUntimed' || isExact
    const isDoomed = provider.mayFail && kind !== 'parts' && random.chance(0.1)
    return {
      id: `truck-${index + 1}${ending}`,
      provider: provider.name,
      kind,
      version,
      qos,
      window: random.pick([1, 1, 4, 16]),
      // Values of two records within `pair_within` are not told apart.
      burst: kind === 'parts' ? 1 : burst,
      // Fewer bursts than single messages, so that a seed stays small.
      everyMs: everyMs * (0.3 + random.next()) * (kind === 'parts' ? 1 : burst) ** 0.7,
      poison: random.chance(0.25) ? 0.2 : 0,
      poisons: poisonsOf[kind],
      fallsEvery: 0,
      partMs: 1,
      isDoomed,
      cleanShare,
      expiriesS,
      identifiers: random.pick(
        isAlike ? ['lowest'] : isAnyIdentifier ? ['counting', 'lowest', 'fromOne'] : ['counting'],
      ),
      clockMs: isAhead && random.chance(0.6) ? aheadOf(random, kind) : clockOf(random, kind),
      isEager: random.chance(0.2),
    }
  })
}

/** Most are nearly right, some are behind, and few are ahead. */
function clockOf(random: Random, kind: ContentKind): number {
  if (random.chance(0.7)) return 0
  if (random.chance(0.4)) return random.below(240_000) - 120_000
  if (random.chance(0.6)) return -random.below(20 * 3_600_000)
  return aheadOf(random, kind)
}

function aheadOf(random: Random, kind: ContentKind): number {
  return kind === 'plain' || kind === 'parked' ? 3_600_000 + random.below(10 * 3_600_000) : 0
}

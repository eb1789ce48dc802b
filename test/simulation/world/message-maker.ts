// message-maker.ts: the messages of one device, one moment after the other, as its plan and the seed draw them.

import type { Random } from '../../support/random.ts'
import type { Kernel } from '../machine/kernel.ts'
import { contentsOf, poisoned, recordsApartMs, type Content, type Poison } from './contents.ts'
import type { DevicePlan, SentMessage } from './fleet.ts'

export type MessageMaker = {
  /** Those of the next moment, with what the gateway forgets of the device meanwhile. */
  next(forgetting: number | null): readonly SentMessage[]
}

/** What is omitted twenty times, over twenty minutes, is believed. */
const fallingMessages = 30

export function createMessageMaker(
  { kernel, random }: { kernel: Kernel; random: Random },
  plan: DevicePlan,
  index: number,
): MessageMaker {
  let lastTs = 0
  let number = 0
  let before: number | null = null
  return { next }

  function next(forgetting: number | null): readonly SentMessage[] {
    number += 1
    lastTs = Math.max(lastTs + recordsApartMs, Math.floor(kernel.trueMs) + plan.clockMs)
    const { provider, id, partMs, fallsEvery } = plan
    const isFallen = fallsEvery > 0 && number < fallingMessages && number % fallsEvery === 0
    const place = { provider, id, index, partMs }
    const contents = contentsOf(plan.kind, place, { number, isFallen, ts: lastTs, before })
    if (random.chance(plan.poison)) {
      const poison = random.pick(plan.poisons)
      return [message(poisoned(contents[0]!, poison, `${plan.id} ${number}`), { poison, forgetting })]
    }
    before = number
    return contents.map((content) => message(content, { poison: null, forgetting }))
  }

  function message(
    { topic, payload, records }: Content,
    { poison, forgetting }: { poison: Poison | null; forgetting: number | null },
  ): SentMessage {
    return {
      device: plan,
      number,
      poison,
      topic,
      payload,
      qos: random.pick(plan.qos),
      records,
      sentMs: [],
      ackedMs: null,
      isForgotten: false,
      mayBeTwice: false,
      forgettings: forgetting === null ? [] : [forgetting],
    }
  }
}

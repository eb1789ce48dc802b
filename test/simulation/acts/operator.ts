// operator.ts: what a person does, through the control socket: probes, reloads, also with another config, and works on
// dead letters and batches. What was done, or may have been, is in `acts`, for the oracle.

import type { Random } from '../../support/random.ts'
import { configPath } from '../daemon.ts'
import type { Machine } from '../machine/machine.ts'
import type { DeadLetter, OperatorAct } from '../oracle/deliveries.ts'
import type { Plan } from '../plan.ts'
import type { Fleet } from '../world/fleet.ts'
import { ask, type Reply } from '../world/control-client.ts'
import type { Service } from '../world/service.ts'

export type Operator = {
  acts: OperatorAct[]
  /** Something, as the seed draws it. */
  act(): void
  /** Releases the batches that wait for a person. */
  releaseHeld(): void
  /** Releases the messages in quarantine. */
  releaseKept(): void
  probe(): void
  /** Reloads the config with a wrong path of the position, or with the right one. */
  losePosition(isLost: boolean): void
  /** Reloads the config with other rules of failures. */
  changeRules(): void
  /** Maps again what was sent without a position. */
  remapLost(): void
  /** Null until the daemon has answered. */
  deadLetters(done: (letters: readonly DeadLetter[] | null) => void): void
  ask(path: string, done: (reply: Reply | null) => void): void
  /** A process of the daemon reads its config. */
  started(): void
  /** When something was last changed. */
  readonly changedMs: number
  /** The config is another one than the daemon has, so it asks for a restart. */
  readonly isConfigNew: boolean
}

type Deps = {
  machine: Machine
  random: Random
  services: readonly Service[]
  fleet: Pick<Fleet, 'forget'>
  reach: (state: string) => void
}

type HeldBatch = { batchId: string; held: { reason: string } | null }

/** The gateway lists no more dead letters at once. */
const listedMax = 1000
/** Reasons for which a batch waits for a person. */
const forPerson = ['repeated', 'refused_repeat']

/** A person who does one thing again and again. */
export type Habit = 'forget' | 'reload' | 'requeue' | 'release devices'

export function createOperator({ machine, random, services, fleet, reach }: Deps, plan: Plan): Operator {
  const { kernel, network, disk } = machine
  const acts: OperatorAct[] = []
  let isPositionLost = false
  let { retryDelays } = plan.delivery
  let config = plan.config(plan.delivery)
  let configAtStart = config
  let changedMs = 0
  const ofDeadLetters = [requeue, requeue, requeue, purge]
  const ofBatches = [retry, () => releaseHeld(), anyHeld]
  const ofKept = [releaseKept, releaseKept, releaseOfDevice]
  const any = [probe, reload, reload, ...ofDeadLetters, ...ofBatches, ...ofKept]
  const ofHabit: Record<Habit, (() => void)[]> = {
    forget: [forget],
    reload: [reload],
    requeue: [requeue],
    'release devices': [releaseOfDevice],
  }
  return {
    acts,
    act,
    releaseHeld,
    releaseKept,
    probe,
    losePosition(isLost) {
      isPositionLost = isLost
      reload()
    },
    changeRules() {
      retryDelays = plan.rulesChange?.retryDelays ?? retryDelays
      reload()
    },
    remapLost: () => change('dead-letters/remap?reason=FIELD_LOST'),
    deadLetters,
    ask: (path, done) => ask(network, { method: 'GET', path }, done),
    started() {
      configAtStart = config
    },
    get changedMs() {
      return changedMs
    },
    get isConfigNew() {
      return config !== configAtStart
    },
  }

  function act(): void {
    random.pick(plan.habit === null ? any : ofHabit[plan.habit])()
  }

  function change(path: string, done: (reply: Reply) => void = () => undefined): void {
    changedMs = kernel.monotonicMs
    ask(network, { method: 'POST', path: `/control/${path}` }, (reply) => {
      if (reply === null) return
      reach(`operator ${path.replace(/\?.*/, '')} ${reply.status}`)
      done(reply)
    })
  }

  function note(kind: OperatorAct['kind'], ids: readonly string[]): void {
    acts.push({ atMs: kernel.monotonicMs, kind, ids })
  }

  function probe(): void {
    note('release', [])
    change('probe')
  }

  function retry(): void {
    note('release', [])
    change('batches/retry?all=1')
  }

  /** With another linger, and sometimes smaller batches. */
  function reload(): void {
    note('release', [])
    const { payloadsMax } = plan.delivery
    const smaller = Math.max(1, payloadsMax - random.below(payloadsMax))
    const delivery = {
      ...plan.delivery,
      retryDelays,
      lingerS: random.pick([0, 1, 5]),
      payloadsMax: random.chance(0.5) ? payloadsMax : smaller,
    }
    config = plan.config(delivery, isPositionLost)
    disk.world.write(configPath, config)
    change('reload')
  }

  function deadLetters(done: (letters: readonly DeadLetter[] | null) => void): void {
    const all = new Map<string, DeadLetter>()
    read('')

    /** The oldest ones come first; those of the same moment come again. */
    function read(since: string): void {
      ask(network, { method: 'GET', path: `/dead-letters?limit=${listedMax}${since}` }, (reply) => {
        if (reply?.status !== 200) return done(null)
        const { deadLetters: letters } = reply.value as { deadLetters: (DeadLetter & { at: string })[] }
        const { size } = all
        for (const letter of letters) all.set(letter.id, letter)
        if (letters.length < listedMax || all.size === size) return done([...all.values()])
        read(`&since=${letters.at(-1)!.at}`)
      })
    }
  }

  function withSome(work: (ids: readonly string[], payloadIds: readonly string[]) => void): void {
    deadLetters((letters) => {
      const some = (letters ?? [])
        .filter(({ stage }) => stage === 'delivery' && random.chance(0.5))
        .slice(0, 20)
      if (some.length > 0)
        work(
          some.map(({ id }) => `id=${id}`),
          some.flatMap(({ payloadId }) => payloadId ?? []),
        )
    })
  }

  function requeue(): void {
    withSome((ids, payloadIds) => {
      note('requeue', payloadIds)
      twice(`dead-letters/requeue?${ids.join('&')}`)
    })
  }

  function forget(): void {
    const of = fleet.forget()
    if (of === null) return
    changedMs = kernel.monotonicMs
    ask(network, { method: 'POST', path: `/control/devices/forget?device=${of.id}` }, of.done)
  }

  function releaseKept(): void {
    twice('quarantine/release?all=1')
  }

  function releaseOfDevice(): void {
    twice(`quarantine/release?device=${random.pick(plan.devices).id}`)
  }

  /** Sometimes a second person does the same. */
  function twice(path: string): void {
    change(path)
    if (random.chance(0.5)) change(path)
  }

  function purge(): void {
    withSome((ids, payloadIds) => {
      note('purge', payloadIds)
      change(`dead-letters/purge?${ids.join('&')}&yes=1`)
    })
  }

  function batches(done: (held: readonly HeldBatch[]) => void): void {
    ask(network, { method: 'GET', path: '/batches?limit=1000' }, (reply) => {
      if (reply?.status !== 200) return
      done((reply.value as { batches: HeldBatch[] }).batches.filter(({ held }) => held !== null))
    })
  }

  /** What waits for a person: delivered where the service has all of it, else under new batchIds. */
  function releaseHeld(): void {
    batches((held) => {
      for (const { batchId, held: how } of held) {
        if (!forPerson.includes(how?.reason ?? '')) continue
        if (isWholeThere(batchId)) change(`batches/mark-delivered?id=${batchId}&yes=1`)
        else reissue(batchId)
      }
    })
  }

  function anyHeld(): void {
    batches((held) => {
      for (const { batchId } of held.slice(0, 3)) random.pick([reissue, split, drop])(batchId)
    })
  }

  function reissue(batchId: string): void {
    note('reissue', [batchId])
    change(`batches/reissue?id=${batchId}&yes=1`)
  }

  function split(batchId: string): void {
    note('reissue', [batchId])
    change(`batches/split?id=${batchId}&yes=1`)
  }

  function drop(batchId: string): void {
    note('drop', [batchId])
    change(`batches/drop?id=${batchId}&yes=1`)
  }

  /** As the support of the service tells it. */
  function isWholeThere(batchId: string): boolean {
    const of = services.flatMap(({ journal, records }) =>
      journal.filter((one) => one.batchId === batchId).map(({ payloadIds }) => ({ payloadIds, records })),
    )[0]
    return (
      of !== undefined &&
      of.payloadIds.every((id) => of.records.get(id)?.accepted.some((one) => one.batchId === batchId))
    )
  }
}

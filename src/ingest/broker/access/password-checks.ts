// password-checks.ts: checks passwords against scrypt hashes, one at a time, and remembers the right ones.
//
//   remembered as right, or as wrong     answered at once
//   the same one is being checked        waits for its result: a fleet with one password needs one check
//   else                                 waits for its turn
//
// scrypt takes milliseconds of a core and shares the threads of libuv with the database. So there is one
// computation at a time, and the turns are fair: the addresses take turns, and within an address its users. A
// client whose connection is closed loses its turn. Who was refused lately, by address and user, waits in a
// second queue, which gets every fourth turn while the first one is not empty: guesses delay nobody else by
// more than that.
//
// A password that was checked is remembered as a keyed hash (HMAC-SHA-256, the key is random and of this
// process only). All are forgotten when users are read again.
//
// Bounds: `waitingMax` waiting checks; beyond, the last one of the address with most is answered `busy`.
// `rememberedMax` right ones, and `wrongMax` wrong ones; the one that was used longest ago is forgotten.

import { createHmac, randomBytes } from 'node:crypto'
import { verifyPassword, type PasswordHash } from '../../../std/passwords/passwords.ts'
import { createFairQueue } from './fair-queue.ts'

export type PasswordCheck = {
  address: string | null
  userName: string
  password: Buffer
  expected: PasswordHash
  /** Refused lately, from this address. */
  suspect: boolean
  /** Nobody waits for the result any more. */
  isClosed: () => boolean
}

export type CheckResult = 'right' | 'wrong' | 'busy'

export type PasswordChecks = {
  check(check: PasswordCheck, checked: (result: CheckResult) => void): void
  forget(): void
  counters(): PasswordCheckCounters
}

export type PasswordCheckCounters = {
  /** Computations, and answers without one. */
  passwordsComputed: number
  passwordsRemembered: number
  passwordsWaiting: number
}

type Job = {
  check: PasswordCheck
  digest: string
  waiting: { isClosed: () => boolean; checked: (result: CheckResult) => void }[]
}

const wrongMax = 10_000
/** Of the turns, while both queues have entries. */
const suspectTurn = 4

export function createPasswordChecks(options: { waitingMax: number; rememberedMax: number }): PasswordChecks {
  const key = randomBytes(32)
  const right = new Set<string>()
  const wrong = new Set<string>()
  /** Waiting and running ones. */
  const jobs = new Map<string, Job>()
  const queue = createFairQueue<Job>()
  const suspects = createFairQueue<Job>()
  let running = false
  let turn = 0
  /** Results of computations that began before the last `forget` are not remembered. */
  let generation = 0
  let computed = 0
  let remembered = 0
  return {
    check,
    forget,
    counters: () => ({
      passwordsComputed: computed,
      passwordsRemembered: remembered,
      passwordsWaiting: queue.size() + suspects.size(),
    }),
  }

  function check(check: PasswordCheck, checked: (result: CheckResult) => void): void {
    const digest = digestOf(check)
    const known = used(right, digest) ? 'right' : used(wrong, digest) ? 'wrong' : null
    if (known !== null) {
      remembered += 1
      checked(known)
      return
    }
    const waiter = { isClosed: check.isClosed, checked }
    const same = jobs.get(digest)
    if (same !== undefined) {
      same.waiting.push(waiter)
      return
    }
    const job = { check, digest, waiting: [waiter] }
    jobs.set(digest, job)
    ;(check.suspect ? suspects : queue).add(check.address ?? '', check.userName, job)
    if (queue.size() + suspects.size() > options.waitingMax) refuseOne()
    if (!running) next()
  }

  function digestOf({ userName, password, expected }: PasswordCheck): string {
    const hmac = createHmac('sha256', key).update(expected.salt).update(expected.hash)
    const name = Buffer.from(userName)
    return hmac.update(`${name.length}:`).update(name).update(password).digest('base64').slice(0, 24)
  }

  function next(): void {
    for (;;) {
      const job = taken()
      if (job === undefined) return
      // Others may have joined who still wait.
      if (job.waiting.some(({ isClosed }) => !isClosed())) {
        running = true
        // Never rejects.
        void compute(job)
        return
      }
      jobs.delete(job.digest)
    }
  }

  function taken(): Job | undefined {
    turn += 1
    const first = queue.size() === 0 || turn % suspectTurn === 0 ? suspects : queue
    return first.take() ?? queue.take()
  }

  async function compute(job: Job): Promise<void> {
    const begun = generation
    let result: CheckResult = 'busy'
    try {
      result = (await verifyPassword(job.check.password, job.check.expected)) ? 'right' : 'wrong'
      computed += 1
      if (begun === generation)
        if (result === 'right') remember(right, job.digest, options.rememberedMax)
        else remember(wrong, job.digest, wrongMax)
    } catch {
      // No memory for it, most likely: nobody is admitted, and the clients try again.
    }
    running = false
    next()
    answer(job, result)
  }

  function refuseOne(): void {
    const job = suspects.size() > 0 ? suspects.dropOfLargest() : queue.dropOfLargest()
    if (job !== undefined) answer(job, 'busy')
  }

  function answer(job: Job, result: CheckResult): void {
    if (jobs.get(job.digest) === job) jobs.delete(job.digest)
    for (const { isClosed, checked } of job.waiting) if (!isClosed()) checked(result)
  }

  function forget(): void {
    generation += 1
    right.clear()
    wrong.clear()
  }
}

/** Whether it is there; it is then the newest. */
function used(digests: Set<string>, digest: string): boolean {
  if (!digests.delete(digest)) return false
  digests.add(digest)
  return true
}

function remember(digests: Set<string>, digest: string, max: number): void {
  digests.add(digest)
  if (digests.size <= max) return
  for (const oldest of digests) {
    digests.delete(oldest)
    return
  }
}

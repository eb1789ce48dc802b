// credentials.ts: the keys that sign, from where the config says.
//
//   asked          what is known is given at once
//   5 min before   they expire they are refreshed, while the old ones go on to serve
//   a file moved   it is read again: asked for, at once; watched, within seconds, also while nobody asks
//   403            reread() asks the source itself, whatever is known (keyring.ts)
//
// While a refresh fails the old ones serve: they may well still be good, and when they are not the service says 403,
// which is handled. Those that have expired are missing, but only where the time is known: a machine whose clock
// is a day ahead would otherwise never send the request that tells it so.

import { stat } from 'node:fs/promises'
import type { CancelTimer, Clock, EpochMs } from '../../std/clock.ts'
import { GatewayError, messageOf } from '../../std/gateway-error.ts'
import { createReader, filesOf } from './credentials-reader.ts'
import type { Credentials } from './credentials-reader.ts'
import type { CredentialsOptions, ProxyOptions } from '../delivery-options.ts'

export type { Credentials } from './credentials-reader.ts'

export type CredentialsSource = {
  /** Rejects with GatewayError CREDENTIALS_MISSING. The same object as long as they are the same. */
  current(): Promise<Credentials>
  /** Asks the source again, whatever is remembered. */
  reread(): Promise<Credentials>
  /** Calls `changed` when the files they come from changed and gave others, until it is cancelled. */
  watch(changed: () => void): CancelTimer
}

type Deps = {
  clock: Clock
  env: NodeJS.ProcessEnv
  /** What has to be added to our clock; null while that is unknown. */
  offsetMs?: () => number | null
  /** On the way to a token service. */
  proxy?: ProxyOptions
  /** A refresh failed and the old ones serve until `expiresAt`; null: it works again. */
  refreshFailed?: (failure: { why: string; expiresAt: EpochMs | null } | null) => void
}

const direct: ProxyOptions = { from: 'none' }

/** Before they expire by this much, credentials are refreshed. */
const refreshBeforeMs = 300_000
/** A file, or a source whose refresh failed, is looked at no more often than this. */
const lookAgainMs = { file: 5000, other: 15_000 }
/** A token service or a `credential_process` that says nothing would hold every submission for ever. */
const answerMs = 30_000
/** What it was asked goes on, since nobody can end it; so long nothing is asked again, or such questions would pile up. */
const askAnewMs = 600_000
/** Whoever mends credentials waits no longer. */
const watchEveryMs = 2000

export function createCredentials(deps: Deps, options: CredentialsOptions): CredentialsSource {
  const { clock, env, offsetMs = () => 0, proxy = direct, refreshFailed = () => {} } = deps
  const read = createReader({ env, proxy }, options)
  const files = filesOf(env, options)
  let known: { credentials: Credentials; mark: string } | null = null
  let lookedAt = Number.NEGATIVE_INFINITY
  let reading: Promise<Credentials> | null = null
  let asked: { work: Promise<Credentials>; atMs: number } | null = null
  let failing = false

  return { current, reread: () => once(true), watch }

  async function current(): Promise<Credentials> {
    if (known === null || isPast(known.credentials)) return once(false)
    if (!isDue(known.credentials)) return known.credentials
    // A file costs a look at the disk; another source may take seconds, and the old ones are good for minutes.
    if (options.source === 'file') return once(false)
    // Those that are known are given again where it fails, which refresh() tells.
    once(false).catch(() => undefined)
    return known.credentials
  }

  function isDue({ expiration }: Credentials): boolean {
    const expires = expiration !== undefined && expiration.getTime() - refreshBeforeMs <= trueNow()
    const againMs = options.source === 'file' ? lookAgainMs.file : lookAgainMs.other
    return (expires || options.source === 'file') && clock.monotonic() - lookedAt >= againMs
  }

  function isPast({ expiration }: Credentials): boolean {
    return expiration !== undefined && offsetMs() !== null && expiration.getTime() <= trueNow()
  }

  function trueNow(): EpochMs {
    return clock.now() + (offsetMs() ?? 0)
  }

  /** Everyone who asks meanwhile gets the same answer: four submissions must not be four calls. */
  function once(force: boolean): Promise<Credentials> {
    reading ??= refresh(force).finally(() => {
      reading = null
    })
    return reading
  }

  async function refresh(force: boolean): Promise<Credentials> {
    lookedAt = clock.monotonic()
    try {
      const mark = await marksOf(files)
      const unchanged = options.source === 'file' && mark === known?.mark
      if (known !== null && unchanged && !force && !isPast(known.credentials)) return known.credentials
      const found = options.source === 'chain' ? await ask() : await read()
      if (isPast(found)) throw new Error('the credentials have expired')
      const same = known !== null && sameKeys(known.credentials, found)
      known = { credentials: same && known !== null ? known.credentials : found, mark }
      tell(null)
    } catch (error) {
      if (known === null || isPast(known.credentials)) throw missing(options, error)
      tell(error)
    }
    return known.credentials
  }

  function ask(): Promise<Credentials> {
    if (asked === null || clock.monotonic() - asked.atMs > askAnewMs) {
      const question = { work: read(), atMs: clock.monotonic() }
      const end = () => {
        if (asked === question) asked = null
      }
      question.work.then(end, end)
      asked = question
    }
    return inTime(clock, asked.work)
  }

  function tell(error: unknown): void {
    if (error === null && !failing) return
    failing = error !== null
    const expiresAt = known?.credentials.expiration?.getTime() ?? null
    refreshFailed(error === null ? null : { why: `${messageOf(error)}.`, expiresAt })
  }

  function watch(changed: () => void): CancelTimer {
    if (files.length === 0) return () => {}
    let seen: string | null = null
    let cancelled = false
    let cancel = clock.after(watchEveryMs, look)
    return () => {
      cancelled = true
      cancel()
    }

    function look(): void {
      // What fails in it, the next submission is told.
      void compare().finally(() => {
        if (!cancelled) cancel = clock.after(watchEveryMs, look)
      })
    }

    async function compare(): Promise<void> {
      const mark = await marksOf(files)
      const moved = mark !== (seen ?? known?.mark ?? mark)
      seen = mark
      if (!moved || cancelled) return
      // What is being read may be of before the change.
      await reading?.catch(() => undefined)
      const before = known?.credentials
      const found = await once(true).catch(() => undefined)
      if (found !== undefined && found !== before && !cancelled) changed()
    }
  }
}

function inTime<Result>(clock: Clock, work: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new Error(`no answer came within ${answerMs} ms`))
    const cancel = clock.after(answerMs, late)
    work.then(resolve, reject).finally(cancel)
  })
}

function sameKeys(one: Credentials, other: Credentials): boolean {
  return (
    one.accessKeyId === other.accessKeyId &&
    one.secretAccessKey === other.secretAccessKey &&
    one.sessionToken === other.sessionToken &&
    one.expiration?.getTime() === other.expiration?.getTime()
  )
}

/** Changes whenever one of the files does. */
async function marksOf(files: readonly string[]): Promise<string> {
  const marks = await Promise.all(
    files.map(async (path) => {
      try {
        const { ino, size, mtimeMs } = await stat(path)
        return `${ino} ${size} ${mtimeMs}`
      } catch {
        // Reading it says why, where it is needed.
        return 'missing'
      }
    }),
  )
  return marks.join('|')
}

function missing(options: CredentialsOptions, cause: unknown): GatewayError {
  const places = {
    environment: 'in the environment',
    chain: 'by the AWS credential chain',
    file: options.source === 'file' ? `in ${options.path}` : '',
    keys: 'in the config',
  }
  return new GatewayError('CREDENTIALS_MISSING', {
    what: `No credentials were found ${places[options.source]}.`,
    why: `${messageOf(cause)}.`,
    act: 'See `delivery.credentials` in the config; nothing is sent until they are there, and nothing is lost.',
    cause,
  })
}

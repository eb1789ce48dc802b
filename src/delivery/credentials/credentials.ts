// credentials.ts: the entry file of the signing keys. It reads them from the configured source, caches and
// refreshes them.
//
//   requested      cached credentials are returned at once
//   5 min before   they expire they are refreshed, while the old ones stay in use
//   file changed   it is read again: at once when credentials are requested, and within seconds when watched
//   no answer      in 30 s: what was started for it is ended, and the next call begins afresh
//   401, 403       reread() reads the source itself, whatever is cached (keyring.ts)
//
// While a refresh fails the old credentials stay in use: they may be valid, and if they are not, the service
// answers 403, which is handled. Expired credentials count as missing, but only where the time is cached: a
// machine whose clock is a day ahead would otherwise never send the request that shows it.

import { stat } from 'node:fs/promises'
import { every, type CancelTimer, type Clock, type EpochMs } from '../../std/clock.ts'
import { GatewayError, messageOf } from '../../std/gateway-error.ts'
import { sameKeys } from './access-keys.ts'
import type { Credentials } from './access-keys.ts'
import { createReader, filesOf } from './credentials-reader.ts'
import type { CredentialsOptions, ProxyOptions } from '../delivery-options.ts'

export type CredentialsSource = {
  /** Rejects with CREDENTIALS_MISSING. The same object as long as the credentials are the same. */
  current(): Promise<Credentials>
  /** Reads the source again, whatever is cached. */
  reread(): Promise<Credentials>
  /** The same, with other keys of the config or another login at the proxy. */
  renew(options: CredentialsOptions, proxy: ProxyOptions): Promise<Credentials>
  /** Calls `changed` when their files change and contain other credentials, until it is cancelled. */
  watch(changed: () => void): CancelTimer
}

type Deps = {
  clock: Clock
  env: NodeJS.ProcessEnv
  /** Service clock minus ours; null while unknown. */
  offsetMs?: () => number | null
  /** For a token service. */
  proxy?: ProxyOptions
  /** A refresh failed and the old credentials stay in use until `expiresAt`; null: it works again. */
  refreshFailed?: (failure: { why: string; expiresAt: EpochMs | null } | null) => void
}

const direct: ProxyOptions = { from: 'none' }

/** Before they expire by this much, credentials are refreshed. */
const refreshBeforeMs = 300_000
/** The least time between two reads of a file, or of a source whose refresh failed. */
const readAgainMs = { file: 5000, other: 15_000 }
/** A token service, a `credential_process` or a disk without an answer is given up after this time. */
const answerMs = 30_000
/** Reads of a hanging disk do not end when they are given up. Each has one of the four threads of Node. */
const hangingMax = 2
/** What a submission waits for a file that may have changed. */
const momentMs = 500
/** New files are in use no later than this. */
const watchEveryMs = 2000

export function createCredentials(deps: Deps, options: CredentialsOptions): CredentialsSource {
  const { clock, env, offsetMs = () => 0, proxy = direct, refreshFailed = () => {} } = deps
  let read = createReader({ env, proxy }, options)
  const files = filesOf(env, options)
  let cached: { credentials: Credentials; mark: string } | null = null
  let readAtMs = Number.NEGATIVE_INFINITY
  /** Of the files at the last read, whatever it gave. */
  let readMark: string | null = null
  let reading: Promise<Credentials> | null = null
  let hanging = 0
  let failing = false

  return { current, reread: () => once(true), renew, watch }

  async function renew(next: CredentialsOptions, nextProxy: ProxyOptions): Promise<Credentials> {
    read = createReader({ env, proxy: nextProxy }, next)
    // A running read is that of the former ones.
    await reading?.catch(() => undefined)
    return once(true)
  }

  async function current(): Promise<Credentials> {
    if (cached === null || isPast(cached.credentials)) return once(false)
    if (!isDue(cached.credentials)) return cached.credentials
    // A file costs one look at the disk, unless that hangs. Another source may take seconds, and the old ones
    // are valid for minutes.
    if (options.source === 'file') return inAMoment(once(false), cached.credentials)
    // Where it fails, the cached ones stay in use; refresh() reports it.
    once(false).catch(() => undefined)
    return cached.credentials
  }

  function inAMoment(read: Promise<Credentials>, before: Credentials): Promise<Credentials> {
    return new Promise((resolve, reject) => {
      const cancel = clock.after(momentMs, () => resolve(before))
      read.finally(cancel).then(resolve, reject)
    })
  }

  function isDue({ expiration }: Credentials): boolean {
    const expires = expiration !== undefined && expiration.getTime() - refreshBeforeMs <= trueNow()
    const againMs = options.source === 'file' ? readAgainMs.file : readAgainMs.other
    return (expires || options.source === 'file') && clock.monotonic() - readAtMs >= againMs
  }

  function isPast({ expiration }: Credentials): boolean {
    return expiration !== undefined && offsetMs() !== null && expiration.getTime() <= trueNow()
  }

  function trueNow(): EpochMs {
    return clock.now() + (offsetMs() ?? 0)
  }

  /** Concurrent callers share one read: four submissions must not be four requests. */
  function once(force: boolean): Promise<Credentials> {
    reading ??= refresh(force).finally(() => {
      reading = null
    })
    return reading
  }

  async function refresh(force: boolean): Promise<Credentials> {
    readAtMs = clock.monotonic()
    try {
      const { credentials: found, mark } = await inTime((ends) => lookUp(force, ends))
      if (isPast(found)) throw new Error('the credentials have expired')
      const same = cached !== null && sameCredentials(cached.credentials, found)
      cached = { credentials: same && cached !== null ? cached.credentials : found, mark }
      reportRefresh(null)
    } catch (error) {
      if (cached === null || isPast(cached.credentials)) throw missing(options, error)
      reportRefresh(error)
    }
    return cached.credentials
  }

  async function lookUp(force: boolean, ends: AbortSignal): Promise<NonNullable<typeof cached>> {
    const mark = (readMark = await marksOf(files))
    const unchanged = options.source === 'file' && mark === cached?.mark
    if (cached !== null && unchanged && !force && !isPast(cached.credentials)) return cached
    return { credentials: await read(ends), mark }
  }

  function inTime<Result>(work: (ends: AbortSignal) => Promise<Result>): Promise<Result> {
    if (hanging >= hangingMax)
      return Promise.reject(
        new Error(`${hanging} reads of the credentials hang: none starts before one ends`),
      )
    const ends = new AbortController()
    hanging += 1
    return new Promise((resolve, reject) => {
      const cancel = clock.after(answerMs, () => {
        ends.abort()
        reject(new Error(`no answer came within ${answerMs} ms`))
      })
      const end = () => {
        hanging -= 1
        cancel()
      }
      work(ends.signal).finally(end).then(resolve, reject)
    })
  }

  function reportRefresh(error: unknown): void {
    if (error === null && !failing) return
    failing = error !== null
    const expiresAt = cached?.credentials.expiration?.getTime() ?? null
    refreshFailed(error === null ? null : { why: `${messageOf(error)}.`, expiresAt })
  }

  function watch(changed: () => void): CancelTimer {
    if (files.length === 0) return () => {}
    let seen: string | null = null
    let cancelled = false
    // A failure is reported to the next submission.
    const end = every(clock, watchEveryMs, () => compare().catch(() => undefined))
    return () => {
      cancelled = true
      end()
    }

    async function compare(): Promise<void> {
      const mark = await marksOf(files)
      const moved = mark !== (seen ?? cached?.mark ?? readMark ?? mark)
      seen = mark
      if (!moved || cancelled) return
      // A running read may have seen the files before the change.
      await reading?.catch(() => undefined)
      const before = cached?.credentials
      const found = await once(true).catch(() => undefined)
      if (found !== undefined && found !== before && !cancelled) changed()
    }
  }
}

function sameCredentials(one: Credentials, other: Credentials): boolean {
  return sameKeys(one, other) && one.expiration?.getTime() === other.expiration?.getTime()
}

/** Changes whenever one of the files changes. */
async function marksOf(files: readonly string[]): Promise<string> {
  const marks = await Promise.all(
    files.map(async (path) => {
      try {
        // The time of its change is also that of a chmod, after which it may be readable.
        const { ino, size, mtimeMs, ctimeMs } = await stat(path)
        return `${ino} ${size} ${mtimeMs} ${ctimeMs}`
      } catch {
        // read() reports why, where the file is needed.
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
    act: 'Check `delivery.credentials` in the config. Nothing is sent until credentials are found. Data is kept.',
    cause,
  })
}

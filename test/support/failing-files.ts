// failing-files.ts: the file system of Node, in which chosen calls of src fail with the code that a test says. The
// calls are found in the text of src, so that a new one cannot be forgotten.

import fs, { readFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')

export type FailingFiles = Disposable & {
  /** From now on each call there fails, with one code after the other. */
  fail(site: string, codes: readonly string[]): void
  /** Codes that no call has met yet. Calls do not fail any more. */
  end(): string[]
  left(): number
  pause(isPaused: boolean): void
  /** Where src has called since the beginning, as `src/file.ts:12 open`. */
  seen: Set<string>
}

/** Of an open file. */
const handleCalls = 'appendFile close datasync read readFile stat sync truncate write writeFile'.split(' ')

type Anything = (...args: unknown[]) => unknown

/** Of everything in this process, until it is disposed. */
export async function failFiles(): Promise<FailingFiles> {
  const seen = new Set<string>()
  const restores: (() => void)[] = []
  let paused = false
  let armed = { site: '', codes: [] as string[] }

  /** The error of this call, where it has to fail. */
  function failureAt(name: string): Error | null {
    // 0: the message, 1: here, 2: the replaced function, 3: its caller.
    const found = /\/(src\/[^:)]+\.ts):(\d+)/.exec(new Error().stack?.split('\n')[3] ?? '')
    if (found === null) return null
    const site = `${found[1]}:${found[2]} ${name}`
    seen.add(site)
    const code = site === armed.site && !paused ? armed.codes.shift() : undefined
    return code === undefined
      ? null
      : Object.assign(new Error(`${code}: a test, ${name}`), { code, syscall: name })
  }

  /** Each handle has a function of its own to close it. */
  async function opened(opening: unknown): Promise<unknown> {
    const handle = (await opening) as { close: () => Promise<void> }
    const { close } = handle
    handle.close = () => {
      const error = failureAt('handle.close')
      // What is closed is closed, also where that fails.
      return error === null ? close() : close().then(() => Promise.reject(error))
    }
    return handle
  }

  function replace(owner: object, name: string, kind: 'throws' | 'rejects', shown = name): void {
    const functions = owner as Record<string, Anything>
    const real = functions[name]
    if (typeof real !== 'function') return
    const own = Object.hasOwn(functions, name)
    functions[name] = function (this: unknown, ...args) {
      const error = failureAt(shown)
      if (error === null) return name === 'open' ? opened(real.apply(this, args)) : real.apply(this, args)
      if (shown === 'existsSync') return false
      if (kind === 'throws') throw error
      return Promise.reject(error)
    }
    restores.push(() => {
      if (own) functions[name] = real
      else delete functions[name]
    })
  }

  const file = await fs.promises.open(import.meta.filename)
  const handles = Object.getPrototypeOf(file) as object
  await file.close()
  for (const name of Object.keys(fs)) if (/^[a-z]\w+Sync$|^watch$/.test(name)) replace(fs, name, 'throws')
  for (const name of Object.keys(fs.promises)) if (/^[a-z]/.test(name)) replace(fs.promises, name, 'rejects')
  for (const name of Object.getOwnPropertyNames(handles))
    if (handleCalls.includes(name)) replace(handles, name, 'rejects', `handle.${name}`)
  syncBuiltinESMExports()

  return {
    seen,
    fail(site, codes) {
      armed = { site, codes: [...codes] }
    },
    left: () => armed.codes.length,
    pause: (isPaused) => void (paused = isPaused),
    end() {
      const { codes } = armed
      armed = { site: '', codes: [] }
      return codes
    },
    [Symbol.dispose]() {
      for (const restore of restores.reverse()) restore()
      syncBuiltinESMExports()
    },
  }
}

/** Every call of node:fs in the files that `entry` imports or starts as threads, and in what these import. */
export function callsOfFiles(entry: string): Set<string> {
  const calls = new Set<string>()
  const files = new Set<string>()
  const waiting = [join(root, entry)]
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (files.has(path)) continue
    files.add(path)
    const text = readFileSync(path, 'utf8')
    for (const [, from = ''] of text.matchAll(/^(?:import|export)\s+(?!type\b)[^'"]*?from\s+'(\.[^']+)'/gms))
      waiting.push(join(dirname(path), from))
    for (const [, name = ''] of text.matchAll(/new URL\(`(\.\/[\w-]+)\$\{import\.meta\.url/g))
      waiting.push(join(dirname(path), `${name}.ts`))
    for (const call of callsIn(text)) calls.add(`${relative(root, path)}:${call}`)
  }
  return calls
}

function callsIn(text: string): string[] {
  const names = [...text.matchAll(/^import\s+\{([^}]*)\}\s+from\s+'node:fs(?:\/promises)?'/gm)]
    .flatMap(([, list = '']) => list.split(',').map((one) => one.trim()))
    .filter((one) => one !== '' && one !== 'constants' && !one.startsWith('type '))
  // Where a file is opened, or an open one is passed on.
  const hasHandles =
    /\b(FileHandle|OpenFile|openRegular|createRegular)\b/.test(text) || names.includes('open')
  return text.split('\n').flatMap((line, index) => {
    if (/^\s*(\/\/|\*|\/\*)/.test(line)) return []
    const called = names.filter((name) => new RegExp(`(?<!function |[.\\w])${name}\\(`).test(line))
    const ofHandles = hasHandles
      ? handleCalls
          .filter((name) => new RegExp(`\\w\\??\\.${name}\\(`).test(line))
          .map((name) => `handle.${name}`)
      : []
    return [...called, ...ofHandles].map((name) => `${index + 1} ${name}`)
  })
}

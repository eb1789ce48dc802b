// Objects on the path of a message have no getters.
//
// V8 keeps an object literal with a getter as a dictionary, whatever else is in it. Then each access is a search, and
// the optimizing compiler copies none of its functions into their callers. Without getters, a message costs about seven
// percent less processor time. Methods and classes (whose getters belong to the prototype) are as fast as fields.

import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'

const src = resolve(import.meta.dirname, '../../src')
/** The folders between PUBLISH and delivered. */
const folders = ['std', 'storage', 'receipts', 'mapping', 'spool', 'ingest', 'delivery', 'device-records']

/** A getter of a class is indented by two spaces, one of an object literal in a function by more. */
function gettersIn(text: string): string[] {
  return [...text.matchAll(/^ {3,}get (\w+)\(\)/gm)].map((match) => match[1] ?? '')
}

describe('the path of a message', () => {
  test('has no getters in object literals', () => {
    const found = folders.flatMap((folder) =>
      readdirSync(join(src, folder), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts'))
        .flatMap((name) =>
          gettersIn(readFileSync(join(src, folder, name), 'utf8')).map(
            (getter) => `${folder}/${name}: ${getter}`,
          ),
        ),
    )
    expect(found).toEqual([])
  })

  test('a getter of a class is allowed, one of an object literal is found', () => {
    expect(gettersIn('class Gate {\n  get closed(): boolean {\n')).toEqual([])
    expect(gettersIn('  return {\n    get closed() {\n')).toEqual(['closed'])
  })

  test('the reason still holds: V8 keeps an object literal with a getter as a dictionary', () => {
    setFlagsFromString('--allow-natives-syntax')
    const isFast = (literal: string): unknown => runInNewContext(`%HasFastProperties((() => (${literal}))())`)
    expect(isFast('{ open: 1, get size() { return 1 } }')).toBe(false)
    expect(isFast('{ open: 1, size() { return 1 } }')).toBe(true)
    expect(isFast('new (class { open = 1; get size() { return 1 } })()')).toBe(true)
  })
})

// The structure of src: no import cycles, folders that open with one file, names that occur once, and the places of
// planted mistakes.

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { mutations } from '../simulation/mutations.ts'

const src = resolve(import.meta.dirname, '../../src')
const foundByPath = resolve(import.meta.dirname, '../simulation/mutations/found-by.json')
const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .map((name) => join(src, name))
  .filter((name) => /\.(ts|js)$/.test(name) && statSync(name).isFile())
const nameOf = (file: string) => relative(src, file)

/** A folder may hold about this many files of its own. */
const filesInFolderMax = 15

/** Every relative import of a file, those of types and `import()` included. */
function importsOf(text: string, file: string): string[] {
  return [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)]
    .map((match) => resolve(dirname(file), match[1] ?? ''))
    .filter((target) => target.startsWith(src))
}

/** Groups of files that import each other in a circle (Tarjan's strongly connected components). */
function cyclesIn(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const order = new Map<string, number>()
  const lowest = new Map<string, number>()
  const stack: string[] = []
  const cycles: string[][] = []
  const visit = (file: string): void => {
    order.set(file, order.size)
    lowest.set(file, order.size - 1)
    stack.push(file)
    for (const next of graph.get(file) ?? []) {
      if (!order.has(next)) visit(next)
      if (stack.includes(next))
        lowest.set(file, Math.min(lowest.get(file) ?? 0, lowest.get(next) ?? Number.MAX_SAFE_INTEGER))
    }
    if (lowest.get(file) !== order.get(file)) return
    const group = stack.splice(stack.indexOf(file))
    if (group.length > 1) cycles.push(group.map(nameOf).toSorted())
  }
  for (const file of graph.keys()) if (!order.has(file)) visit(file)
  return cycles
}

describe('the structure of src', () => {
  test('has no import cycle, imports of types included', () => {
    const graph = new Map(files.map((file) => [file, importsOf(readFileSync(file, 'utf8'), file)]))
    expect(cyclesIn(graph)).toEqual([])
  })

  test('reports a cycle, also one of types only', () => {
    const text = "import type { Lane } from './lane.ts'\nexport type { Group } from './group.ts'"
    expect(importsOf(text, join(src, 'spool/seal.ts')).map(nameOf)).toEqual([
      'spool/lane.ts',
      'spool/group.ts',
    ])
    const graph = new Map([
      [join(src, 'a.ts'), [join(src, 'b.ts')]],
      [join(src, 'b.ts'), [join(src, 'c.ts'), join(src, 'd.ts')]],
      [join(src, 'c.ts'), [join(src, 'a.ts')]],
      [join(src, 'd.ts'), []],
    ])
    expect(cyclesIn(graph)).toEqual([['a.ts', 'b.ts', 'c.ts']])
  })

  test('has at most 15 files in a folder', () => {
    const counts = Map.groupBy(files, (file) => nameOf(dirname(file)))
    const large = [...counts].filter(([, own]) => own.length > filesInFolderMax)
    expect(large.map(([folder, own]) => `${folder}: ${own.length} files`)).toEqual([])
  })

  test('has no file name and no folder name twice', () => {
    const shared = ['config.ts', 'types.ts']
    const byName = Map.groupBy(files, (file) => basename(file))
    const twice = [...byName].filter(([name, own]) => own.length > 1 && !shared.includes(name))
    expect(twice.map(([name, own]) => `${name}: ${own.map(nameOf).join(', ')}`)).toEqual([])
    const folders = [...new Set(files.map((file) => dirname(file)))].filter((folder) => folder !== src)
    const folderNames = Map.groupBy(folders, (folder) => basename(folder))
    expect([...folderNames].filter(([, own]) => own.length > 1).map(([name]) => name)).toEqual([])
  })

  test('has a file named like its folder in every subfolder, and it opens with prose', () => {
    const folders = [...new Set(files.map((file) => dirname(file)))].filter(
      (folder) => folder !== src && dirname(folder) !== src,
    )
    const silent = folders.filter((folder) => {
      const entry = files.find((file) => file === join(folder, `${basename(folder)}.ts`))
      if (entry === undefined) return true
      return !readFileSync(entry, 'utf8').startsWith(`// ${basename(folder)}.ts: `)
    })
    expect(silent.map(nameOf)).toEqual([])
  })

  test('has headers that name their own file, and comments of at most 110 columns', () => {
    const problems: string[] = []
    for (const file of files.filter((name) => name.endsWith('.ts'))) {
      const lines = readFileSync(file, 'utf8').split('\n')
      const header = lines.find((line) => !line.startsWith('#!')) ?? ''
      if (/^\/\/ [\w-]+\.ts:/.test(header) && !header.startsWith(`// ${basename(file)}:`))
        problems.push(`${nameOf(file)}:1 names another file: ${header}`)
      for (const [index, line] of lines.entries())
        if (line.length > 110 && /^\s*(\/\/|\*|\/\*)/.test(line))
          problems.push(`${nameOf(file)}:${index + 1} has ${line.length} columns`)
    }
    expect(problems).toEqual([])
  })
})

describe('the planted mistakes of the simulation', () => {
  test('each has its place in src, once, and a seed that found it', () => {
    const seeds = JSON.parse(readFileSync(foundByPath, 'utf8')) as Record<string, number>
    const wrong = mutations.flatMap(({ name, file, find }) => {
      const places = readFileSync(join(src, file), 'utf8').split(find).length - 1
      return places === 1 && name in seeds ? [] : [`${name}: ${places} places, seed ${seeds[name]}`]
    })
    expect(wrong).toEqual([])
  })
})

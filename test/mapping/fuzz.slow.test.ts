import { testBrokenMessages } from './fuzz-tests.ts'

// Seeds that failed are kept.
testBrokenMessages([1, 2, 7, 42, 20_260_128], 10_000)

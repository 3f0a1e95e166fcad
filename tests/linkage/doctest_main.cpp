#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

namespace {

unsigned chosen = 0;

/// Counts the test cases that the filters of the command line leave.
struct count_of_cases : doctest::IReporter {
    explicit count_of_cases(const doctest::ContextOptions&) {}
    void report_query(const doctest::QueryData&) override { chosen = 1; }
    void test_run_start() override {}
    void test_run_end(const doctest::TestRunStats& all) override { chosen = all.numTestCasesPassingFilters; }
    void test_case_start(const doctest::TestCaseData&) override {}
    void test_case_reenter(const doctest::TestCaseData&) override {}
    void test_case_end(const doctest::CurrentTestCaseStats&) override {}
    void test_case_exception(const doctest::TestCaseException&) override {}
    void subcase_start(const doctest::SubcaseSignature&) override {}
    void subcase_end() override {}
    void log_assert(const doctest::AssertData&) override {}
    void log_message(const doctest::MessageData&) override {}
    void test_case_skipped(const doctest::TestCaseData&) override {}
};

DOCTEST_REGISTER_LISTENER("count_of_cases", 1, count_of_cases);

}  // namespace

int main(int argc, char** argv) {
    const int status = doctest::Context(argc, argv).run();
    if (chosen == 0) {  // a test that was renamed or lost must not pass
        std::fputs("no test case matches the filters of the command line\n", stderr);
        return 1;
    }
    return status;
}

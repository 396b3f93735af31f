// Scratch memory that threads borrow, so that nothing is allocated once each has worked.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace paceline::runtime {

// Objects of a type that one thread uses at a time. Thread safe; as many objects are made as were
// ever borrowed at once.
template <class T>
class Pool {
 public:
  // Borrows an object and returns it when it goes.
  class Loan {
   public:
    explicit Loan(Pool& pool) : pool_(pool), object_(pool.taken()) {}
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan() { pool_.give_back(std::move(object_)); }

    T* operator->() { return object_.get(); }

   private:
    Pool& pool_;
    std::unique_ptr<T> object_;
  };

 private:
  std::unique_ptr<T> taken() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) {
      auto object = std::make_unique<T>();
      idle_.reserve(++made_);  // so that giving back cannot fail
      return object;
    }
    std::unique_ptr<T> object = std::move(idle_.back());
    idle_.pop_back();
    return object;
  }
  void give_back(std::unique_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(object));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> idle_;
  std::size_t made_ = 0;
};

}  // namespace paceline::runtime
